"""Inspects the corpora of pretraining: documents long enough for the stages, and long-context questions that
fit."""

from __future__ import annotations

from collections.abc import Iterator

from foresail.check.finding import Finding, refusal
from foresail.data.corpus.corpus import Corpus
from foresail.data.corpus.stage_sources import stage_sources
from foresail.recipe.stages.pretrain import Pretrain
from foresail.recipe.tables.corpus import CorpusError
from foresail.recipe.tables.sources import named
from foresail.tokenizer.tokenizer import Tokenizer


def look_at_corpora(
    recipe: Pretrain, tokenizer: Tokenizer | None, *, max_context: int | None
) -> Iterator[Finding]:
    yield from look_at_lengths(recipe)
    if tokenizer is not None:
        yield from look_at_questions(recipe, tokenizer, max(recipe.max_length, max_context or 0))


def look_at_lengths(recipe: Pretrain) -> Iterator[Finding]:
    try:
        corpora = {corpus.source: Corpus(corpus.source) for _, corpus in recipe.corpora()}
    except (CorpusError, OSError):
        return  # the preflight refuses it
    for number, (place, _) in enumerate(named("stages", recipe.stages)):
        try:
            stage_sources(recipe, corpora, number)
        except ValueError as error:
            yield refusal(f"{place}: {error}")


def look_at_questions(recipe: Pretrain, tokenizer: Tokenizer, context: int) -> Iterator[Finding]:
    if (settings := recipe.long_context) is None:
        return
    from foresail.evaluation.long_context import check_questions  # with torch: only where it is needed

    try:
        check_questions(tokenizer, settings, context=context, seed=recipe.run.seed)
    except (OSError, ValueError) as error:
        yield refusal(str(error))
