"""The corpus step `resample`: how many copies of each document, by quality, occurrences and language or domain.

    [[step]]
    name = "resample"
    quality = "education"            # key of metadata
    tiers = [0.3, 0.8]               # of each language: the worst 30 %, the next 50 %, the best 20 %
    copies = [0.2, 1.0, 1.0]         # expected copies in each tier …
    repeat = [0.0, 0.0, 0.5]         # … times occurrences ** repeat
    shares = [{name = "id", share = 0.4}, {name = "th", share = 0.2}]   # of the text; the others: the rest

`within = "domain"` makes tiers and shares by another key than the language.

Here a text of the best tier that occurred nine times before deduplication is there three times. The fraction of an
expected number is drawn by the seed and the document's id, so that no order matters. Copies are named id~2, id~3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from foresail.curate.document import Document, Drop
from foresail.curate.select.copy_plan import CopyPlan
from foresail.curate.step import Outcome


class Resample(CopyPlan):
    """Copies of each document by quality, occurrences and language or domain."""

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        from foresail.curate.select.copies import write_traits

        write_traits(self, documents, features)

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        from foresail.curate.select.copies import decide_copies

        return decide_copies(self, features, decisions)

    def open(self, decisions: Path) -> Callable[[int, Document], Outcome]:
        import numpy as np

        copies = np.fromfile(decisions, np.uint16)
        return lambda number, document: repeat_document(document, int(copies[number]))


def repeat_document(document: Document, copies: int) -> Outcome:
    if copies == 0:
        return Drop("resampled", "no copy was drawn")
    others = [replace(document, id=f"{document.id}~{number}") for number in range(2, copies + 1)]
    return [document, *others]
