"""Exact duplicates: the same text, but for spaces and line ends.

[[step]]
name = "exact_duplicates"
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from foresail.curate.deduplicate.blocks import Array
from foresail.curate.deduplicate.collected import Collected, collect_blocks, key_of
from foresail.curate.deduplicate.groups import equal_groups
from foresail.curate.deduplicate.verdicts import KEEP, Apply, Keep, Verdicts, own_numbers, write_verdicts
from foresail.curate.document import Document
from foresail.curate.rows.holds import ANY, Holds
from foresail.recipe.tables.part import Part


class DuplicateKeys(Part):
    """Documents with one key are one document; what the key is, a subclass says."""

    keep: Keep = Field("first", description=KEEP)
    memory_gib: float = Field(2.0, gt=0, description="memory for sorting; what is more goes to the disk")

    def key(self, document: Document) -> tuple[int, int]:
        raise NotImplementedError

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        def columns(batch: Sequence[Document]) -> dict[str, Array]:
            return {"keys": np.array([self.key(document) for document in batch], np.uint64)}

        collect_blocks(documents, features, columns)

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        collected = Collected.open(features)
        first_n = own_numbers(scratch / "first", collected.documents)

        def keys() -> Iterator[tuple[Array, Array]]:
            for start, block in collected.blocks():
                yield block["keys"], np.arange(start, start + len(block["keys"]))

        memory = int(self.memory_gib * 2**30)
        for numbers, starts in equal_groups(keys, len(first_n), memory, scratch / "groups"):
            first_n[numbers] = np.repeat(numbers[starts[:-1]], np.diff(starts))
        return write_verdicts(collected, first_n, decisions, scratch)


class ExactDuplicates(DuplicateKeys):
    """Drops documents whose text an earlier one has."""

    takes: ClassVar[Holds] = ANY

    def key(self, document: Document) -> tuple[int, int]:
        text = " ".join(document.text.split()).encode("utf-8", "replace")
        return key_of(text or document.content)

    def open(self, decisions: Path) -> Apply:
        return Verdicts(decisions, "exact_duplicate", self.keep)
