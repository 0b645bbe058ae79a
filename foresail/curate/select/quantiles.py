"""The corpus step `quantiles`: keeps the documents whose number in metadata lies between two quantiles.

    [[step]]
    name = "quantiles"
    key = "perplexity"
    least = 0.05          # without the lowest 5 % of each language …
    most = 0.9            # … and the highest 10 %

Dropped: low_perplexity, high_perplexity. Documents with equal numbers share their fate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.rows.holds import ANY, Holds
from foresail.curate.step import Outcome
from foresail.recipe.tables.part import CheckedPart


class Quantiles(CheckedPart):
    """Bounds by rank of a number in metadata."""

    takes: ClassVar[Holds] = ANY

    key: str = Field(description="key of metadata with a number, such as perplexity")
    least: float = Field(0.0, ge=0, le=1, description="share of the lowest documents that is dropped")
    most: float = Field(1.0, ge=0, le=1, description="share up to which documents are kept")
    within: str = Field("language", description="quantiles of each value of this key; empty: of all together")

    def mistakes(self) -> Iterator[str]:
        if self.least >= self.most:
            yield f"least {self.least:g} and most {self.most:g} leave nothing; write least below most"

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        from foresail.curate.select.copies import write_traits
        from foresail.curate.select.copy_plan import CopyPlan

        write_traits(CopyPlan(quality=self.key, within=self.within), documents, features)

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        from foresail.curate.select.ranks import decide_by_rank

        return decide_by_rank(features, decisions, self.least, self.most)

    def open(self, decisions: Path) -> Callable[[int, Document], Outcome]:
        import numpy as np

        sides = np.fromfile(decisions, np.int8)
        return lambda number, document: self.settle(document, int(sides[number]))

    def settle(self, document: Document, side: int) -> Outcome:
        if not side:
            return document
        return Drop(f"{'low' if side < 0 else 'high'}_{self.key}", str(document.metadata[self.key]))
