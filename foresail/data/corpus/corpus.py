"""A corpus of token shards, mapped into memory: any stretch of any document, without reading the rest.

    corpus = Corpus("corpora/web", tokenizer=fingerprint)
    corpus.read(7, 0, 100)              # the first hundred ids of document 7
    corpus.lengths(np.array([7, 3]))    # tokens of these documents

Opening looks at the manifest and at the size of every file; `verify` reads all of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import numpy as np

from foresail.recipe.tables.corpus import AGAIN, CorpusError, ShardEntry, read_manifest, size_mistakes


class Documents(Protocol):
    """What rows are packed from: a corpus, or some documents of one."""

    num_documents: int
    num_tokens: int

    def lengths(self, documents: np.ndarray) -> np.ndarray: ...

    def read(self, document: int, start: int, stop: int) -> np.ndarray: ...


class Corpus:
    def __init__(self, folder: str | Path, *, tokenizer: str | None = None) -> None:
        """`tokenizer` is the fingerprint that it must have been made with; None: any."""
        self.folder, self.manifest = Path(folder), read_manifest(folder)
        if mistake := next(size_mistakes(self.folder, self.manifest), None):
            raise CorpusError(mistake)
        if tokenizer not in (None, self.manifest.tokenizer):
            raise CorpusError(
                f"{self.folder} was made with another tokenizer than the model's; tokenize its texts with that one"
            )
        self.num_documents, self.num_tokens = self.manifest.documents, self.manifest.tokens
        counts = [shard.documents for shard in self.manifest.shards]
        self._firsts = np.cumsum([0, *counts])  # number of each shard's first document
        self._opened: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def lengths(self, documents: np.ndarray) -> np.ndarray:
        lengths = np.empty(len(documents), np.int64)
        shards = self._shards_of(documents)
        for shard in np.unique(shards):
            mine = shards == shard
            _, ends = self._open(int(shard))
            place = documents[mine] - self._firsts[shard]
            lengths[mine] = ends[place] - np.where(place > 0, ends[place - 1], 0)
            if np.any(lengths[mine] <= 0):
                raise CorpusError(f"{self._path(int(shard))}.ends {ALTERED}")
        return lengths

    def read(self, document: int, start: int, stop: int) -> np.ndarray:
        shard = int(self._shards_of(np.array([document]))[0])
        tokens, ends = self._open(shard)
        place = document - int(self._firsts[shard])
        first = int(ends[place - 1]) if place else 0
        assert first + stop <= ends[place], f"document {document} has fewer than {stop} tokens"
        ids = tokens[first + start : first + stop]
        if len(ids) and ids.max() >= self.manifest.vocab_size:  # no row of an embedding
            raise CorpusError(f"{self._path(shard)}.tokens {ALTERED}")
        return ids

    def _shards_of(self, documents: np.ndarray) -> np.ndarray:
        return np.searchsorted(self._firsts, documents, side="right") - 1

    def _path(self, number: int) -> Path:
        return self.folder / self.manifest.shards[number].name

    def _open(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        if number not in self._opened:
            shard = self.manifest.shards[number]
            tokens = np.memmap(
                self.folder / f"{shard.name}.tokens",
                np.dtype(self.manifest.id_type).newbyteorder("<"),
                mode="r",
            )
            ends = np.memmap(self.folder / f"{shard.name}.ends", "<i8", mode="r")
            if ends[-1] != len(tokens):
                raise CorpusError(f"{self._path(number)}.ends {ALTERED}")
            self._opened[number] = tokens, ends
        return self._opened[number]

    def verify(self) -> Iterator[str]:
        """Read every file; what is wrong with them, one line each."""
        for number, shard in enumerate(self.manifest.shards):
            wrong = [*self._altered(shard)]
            yield from wrong or self._impossible(number)

    def _altered(self, shard: ShardEntry) -> Iterator[str]:
        for suffix, expected in (("tokens", shard.tokens_checksum), ("ends", shard.ends_checksum)):
            path = self.folder / f"{shard.name}.{suffix}"
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                    yield f"{path} {ALTERED}"

    def _impossible(self, number: int) -> Iterator[str]:
        """Contents that were wrong when they were written, so that checksums agree."""
        tokens, ends = self._open(number)
        name = self._path(number)
        if np.any(np.diff(ends, prepend=0) <= 0):
            yield f"{name}.ends has documents without a token; {AGAIN}"
        if int(tokens.max()) >= self.manifest.vocab_size:
            yield f"{name}.tokens has ids beyond the tokenizer's {self.manifest.vocab_size}; {AGAIN}"


ALTERED = f"is not what was written; restore it, or {AGAIN}"
