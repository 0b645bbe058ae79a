"""Corpora of a stage of pretraining, with their shares, as its recipe has them."""

from __future__ import annotations

from collections.abc import Mapping

from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.length_view import CorpusSource, split_by_length
from foresail.recipe.stages.pretrain import Pretrain


def stage_sources(recipe: Pretrain, corpora: Mapping[str, Corpus], number: int) -> list[CorpusSource]:
    """A stage's corpora; with `long_share` each one twice, as its short and its long documents."""
    stage, boundary = recipe.stages[number], recipe.long_from(number)
    sources = [
        CorpusSource(
            label=corpus.label,
            documents=corpora[corpus.source],
            weight=corpora[corpus.source].num_tokens if corpus.weight is None else corpus.weight,
            epochs=corpus.epochs,
        )
        for corpus in stage.data
    ]
    if stage.long_share is None or boundary is None:
        return sources
    return split_by_length(sources, boundary=boundary, long_share=stage.long_share)
