"""What was decided on each document: which one it repeats, and how many each survivor stands for.

`first_n` holds, for document number n, the number of the one it repeats: n itself if it stays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from foresail.curate.deduplicate.blocks import Array, BlockWriter, read_blocks
from foresail.curate.deduplicate.collected import MOST, Collected, id_check, names_of
from foresail.curate.document import Document, Drop
from foresail.curate.step import Outcome

Keep = Literal["first", "all"]
KEEP = (
    "first: repeated documents are dropped; all: they stay, with duplicate_of in their metadata. "
    "With both, occurrences counts them"
)
AT_ONCE = 1 << 20
Apply = Callable[[int, Document], Outcome]


def scratch_array(path: Path, size: int, kind: Any) -> Array:
    """Zeros in a file, of which the system holds in memory what is used."""
    return np.memmap(path, kind, mode="w+", shape=(size,)) if size else np.zeros(0, kind)


def own_numbers(path: Path, size: int) -> Array:
    """first_n before anything is known: every document stays."""
    first_n = scratch_array(path, size, np.int64)
    for begin in range(0, size, AT_ONCE):
        first_n[begin : begin + AT_ONCE] = np.arange(begin, min(begin + AT_ONCE, size))
    return first_n


def write_verdicts(
    collected: Collected, first_n: Array, decisions: Sequence[Path], scratch: Path
) -> dict[str, Any]:
    """A file for each piece; figures for the report."""
    counts_n = scratch_array(scratch / "counts", len(first_n), np.int64)
    repeated_n = scratch_array(scratch / "repeated", len(first_n), np.uint8)
    removed = 0
    for start, block in collected.blocks():
        numbers = np.arange(start, start + len(block["occurrences"]))
        firsts = first_n[numbers]
        np.add.at(counts_n, firsts, block["occurrences"].astype(np.int64))
        repeated_n[firsts[firsts != numbers]] = 1
        removed += int(np.count_nonzero(firsts != numbers))
    places_n = scratch_array(scratch / "places", len(first_n), np.int64)
    names = write_names(collected, repeated_n, places_n, scratch / "names")
    blocks = collected.blocks()
    for sizes, path in zip(collected.block_sizes, decisions, strict=True):
        with BlockWriter(path) as file:
            for _ in sizes:
                start, block = next(blocks)
                file.add(**verdict_block(start, block, first_n, counts_n, places_n, names))
    groups = sum(int(repeated_n[at : at + AT_ONCE].sum()) for at in range(0, len(repeated_n), AT_ONCE))
    return {"documents": len(first_n), "removed": removed, "groups": groups, "largest": largest(counts_n)}


def largest(counts_n: Array) -> int:
    return max((int(counts_n[at : at + AT_ONCE].max()) for at in range(0, len(counts_n), AT_ONCE)), default=0)


def write_names(collected: Collected, repeated_n: Array, places_n: Array, path: Path) -> Array:
    """The ids of documents that others repeat, behind one another; places_n says where each begins."""
    with path.open("wb") as file:
        file.write(bytes(4))
        for start, block in collected.blocks():
            for number in np.flatnonzero(repeated_n[start : start + len(block["occurrences"])]).tolist():
                name = name_of(block, number)
                places_n[start + number] = file.tell()
                file.write(len(name).to_bytes(4, "little") + name)
    return np.memmap(path, np.uint8, mode="r")


def read_name(names: Array, place: int) -> bytes:
    size = int.from_bytes(names[place : place + 4].tobytes(), "little")
    return names[place + 4 : place + 4 + size].tobytes()


def name_of(block: dict[str, Array], number: int) -> bytes:
    ends = block["name_ends"]
    begin = int(ends[number - 1]) if number else 0
    return block["names"][begin : int(ends[number])].tobytes()


def verdict_block(
    start: int, block: dict[str, Array], first_n: Array, counts_n: Array, places_n: Array, names: Array
) -> dict[str, Array]:
    numbers = np.arange(start, start + len(block["occurrences"]))
    firsts = first_n[numbers]
    texts = []
    for number, first in zip(numbers.tolist(), firsts.tolist(), strict=True):
        texts.append(b"" if first == number else read_name(names, int(places_n[first])))
    return {
        "checks": np.array([id_check(name) for name in names_of(block)], np.uint32),
        "removed": firsts != numbers,
        "occurrences": np.clip(counts_n[firsts], 1, MOST).astype(np.uint32),
        "names": np.frombuffer(b"".join(texts), np.uint8),
        "name_ends": np.cumsum([len(text) for text in texts], dtype=np.int64),
    }


class DecidedBlocks:
    """Decisions on a piece, by document number. Another id than the decided one is an error, never a wrong drop."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.blocks = list(read_blocks(path))
        self.starts = [0]
        for block in self.blocks:
            self.starts.append(self.starts[-1] + len(block["checks"]))

    def find(self, n: int, document: Document) -> tuple[dict[str, Array], int]:
        """The block of a document, and its number there."""
        place = bisect_right(self.starts, n) - 1
        if not 0 <= place < len(self.blocks):
            raise ValueError(f"{self.path} decides on {self.starts[-1]} documents, and this is number {n}")
        block, number = self.blocks[place], n - self.starts[place]
        if int(block["checks"][number]) != id_check(document.id.encode("utf-8", "replace")):
            raise ValueError(f"{self.path} decides on another document as number {n} than {document.id}")
        return block, number


class Verdicts(DecidedBlocks):
    """Whom a document repeats, applied."""

    def __init__(self, path: Path, reason: str, keep: Keep) -> None:
        super().__init__(path)
        self.reason, self.keep = reason, keep

    def __call__(self, n: int, document: Document) -> Outcome:
        block, number = self.find(n, document)
        metadata = {**document.metadata, "occurrences": int(block["occurrences"][number])}
        if not block["removed"][number]:
            return replace(document, metadata=metadata)
        name = name_of(block, number).decode()
        if self.keep == "first":
            return Drop(self.reason, f"repeats {name}")
        return replace(document, metadata=metadata | {"duplicate_of": name})
