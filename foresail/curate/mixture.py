"""Mixtures of a curation recipe: which share of a pretraining stage each folder of tokens has.

    [[mixture]]
    name = "stage-2"
    corpora = [
        {name = "maths", share = 0.4},
        {name = "code", share = 0.3, epochs = 4},
        {name = "synthetic", share = 0.1, source = "corpora/synthetic"},   # from elsewhere
    ]
    exclude = ["adverts"]

Written as out/mixtures/stage-2.toml, which a stage of `foresail pretrain` takes as its data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field, Strict

from foresail.recipe.keys import Tables
from foresail.recipe.tables.part import CheckedPart, Part
from foresail.recipe.tables.values import SourceName


class MixtureCorpus(Part):
    """One corpus of a mixture."""

    name: str = Field(description="a folder of the sink: a value of its key `by`")
    share: float | None = Field(
        None, gt=0, lt=1, description="of the stage's tokens; default: as the corpora without a share have"
    )
    epochs: int | None = Field(None, gt=0, description="passes over it in the whole pretraining, at most")
    source: str | None = Field(None, description="folder of token shards from elsewhere")


class Mixture(CheckedPart):
    """Corpora without a share, and folders that are not named, share the rest by their tokens."""

    name: SourceName = Field(description="of its file: mixtures/NAME.toml below out")
    sink: str = Field("tokens", description="name of the sink of tokens")
    corpora: Tables[MixtureCorpus] = Field((), description="default: all folders, by their tokens")
    exclude: Annotated[tuple[str, ...], Strict(False)] = Field(
        (), description="folders of the sink that are left out"
    )

    def mistakes(self) -> Iterator[str]:
        names = [corpus.name for corpus in self.corpora]
        for name, count in Counter(names).items():
            if count > 1:
                yield f"mixture {self.name} names {name} {count} times; write one table for it"
            if name in self.exclude:
                yield f"mixture {self.name} names {name} and excludes it; remove one of the two"
        total = sum(corpus.share or 0.0 for corpus in self.corpora)
        if total > 1 + 1e-9:
            yield f"mixture {self.name} has shares of {total:g} in all; make it 1 at most"
