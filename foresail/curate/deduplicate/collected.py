"""What every duplicate step collects of a document, beside its keys: its id, and how many it stands for already.

Documents have numbers: over all pieces, in the order of the pieces.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foresail.curate.deduplicate.blocks import Array, BlockWriter, read_blocks
from foresail.curate.document import Document

DOCUMENTS_AT_ONCE = 1024
CHARACTERS_AT_ONCE = 4_000_000
MOST = 2**32 - 1
NONE = (0, 0)  # the key of a document that has nothing to compare


def collect_blocks(
    documents: Iterable[Document], path: Path, columns: Callable[[Sequence[Document]], dict[str, Array]]
) -> None:
    """Write a block for each batch: ids, occurrences, and what `columns` computes."""
    with BlockWriter(path) as file:
        for batch in batches(documents):
            names = [document.id.encode("utf-8", "replace") for document in batch]
            file.add(
                names=np.frombuffer(b"".join(names), np.uint8),
                name_ends=np.cumsum([len(name) for name in names], dtype=np.int64),
                occurrences=np.array([occurrences(document) for document in batch], np.uint32),
                **columns(batch),
            )


def batches(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """As many as fit into some megabytes, at least one."""
    batch: list[Document] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += len(document.text)
        if len(batch) == DOCUMENTS_AT_ONCE or size >= CHARACTERS_AT_ONCE:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def occurrences(document: Document) -> int:
    """Documents that this one stands for: what an earlier step counted. A copy that was kept is counted already."""
    if document.metadata.get("duplicate_of"):
        return 0
    count = document.metadata.get("occurrences", 1)
    return count if isinstance(count, int) and 0 < count <= MOST else 1


def key_of(content: bytes) -> tuple[int, int]:
    """128 bits: two different texts with one key are not to be expected, even among 10¹² documents."""
    digest = hashlib.blake2b(content, digest_size=16).digest()
    return int.from_bytes(digest[:8], "little") | 1, int.from_bytes(digest[8:], "little")


def id_check(name: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(name, digest_size=4).digest(), "little")


@dataclass(frozen=True)
class Collected:
    """The files of all pieces, and how many documents each block of them has."""

    files: Sequence[Path]
    block_sizes: Sequence[Sequence[int]]

    @classmethod
    def open(cls, files: Sequence[Path]) -> Collected:
        return cls(files, [[len(block["occurrences"]) for block in read_blocks(file)] for file in files])

    @property
    def documents(self) -> int:
        return sum(map(sum, self.block_sizes))

    def blocks(self) -> Iterator[tuple[int, dict[str, Array]]]:
        """Every block of every piece in order, with the number of its first document."""
        start = 0
        for file in self.files:
            for block in read_blocks(file):
                yield start, block
                start += len(block["occurrences"])


def names_of(block: dict[str, Array]) -> Iterator[bytes]:
    content, start = block["names"].tobytes(), 0
    for end in block["name_ends"].tolist():
        yield content[start:end]
        start = end
