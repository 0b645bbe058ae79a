"""The two kinds of steps. Both are tables of a recipe: their settings are their fields.

A step looks at one document at a time, and gives it back, changed or not, or several, or a reason to drop it:

    class Length(Part):
        min_chars: int = 200

        def open(self) -> StepFunction:                    # once in every process: load what is needed here
            return partial(check_length, min_chars=self.min_chars)

Of several documents, some may be drops: each is counted by its reason.

A corpus step needs to see all documents before it decides on one (deduplication, resampling):

1. `collect` writes what it needs of one piece's documents to a file; pieces are collected in parallel;
2. `decide` reads all these files, in the order of the pieces, and writes one file of decisions per piece;
3. `open` returns what applies the decisions of one piece: document number n of the piece in, outcome out.

A step that asks a model has `open_asking` instead of `open` (`asking/asking.py`), and `cost`: what it may cost, by
the documents and bytes that come to it, is told before it begins.

A step that needs files may have two methods more. `preflight` raises ValueError or OSError if one is missing or
wrong, before the first document is read. `files` is their paths: a stopped run does not go on with other content.
Steps do not depend on time, on chance without a seed, or on the number of processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol

from foresail.curate.document import Document, Drop

Outcome = Document | Sequence[Document | Drop] | Drop
StepFunction = Callable[[Document], Outcome]


class Step(Protocol):
    def open(self) -> StepFunction: ...


class CorpusStep(Protocol):
    def collect(self, documents: Iterable[Document], features: Path) -> None: ...

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        """Figures for the report. `scratch` is an empty folder, removed afterwards."""
        ...

    def open(self, decisions: Path) -> Callable[[int, Document], Outcome]: ...
