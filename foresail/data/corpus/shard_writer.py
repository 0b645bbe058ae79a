"""Writes one piece of a corpus as one shard: ids and ends of documents, written aside, synced, renamed.

The pool writes the receipt afterwards (`data/jobs/pool.py`); a shard without one is not done. The same piece gives
the same bytes in any process.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from foresail.data.corpus.documents import Piece, TextForm, TextPart, read_piece
from foresail.runlog.atomic import hidden_sibling, sync
from foresail.tokenizer.documents import DocumentEncoder

PARTS_AT_ONCE, CHARACTERS_AT_ONCE = 512, 2**20  # that are encoded in one go
DOCUMENTS_AT_ONCE = 64  # that are written in one go


@dataclass(kw_only=True)
class Receipt:
    """The counts and files of a finished piece. One without documents has no shard."""

    documents: int = 0
    tokens: int = 0
    longest: int = 0
    empty: int = 0
    mended: int = 0
    tokens_checksum: str = ""
    ends_checksum: str = ""


@dataclass(kw_only=True)
class CheckedFile:
    """A file that is open for writing, with the checksum of what was written."""

    file: IO[bytes]
    digest: Any = field(default_factory=hashlib.sha256)

    def write(self, numbers: np.ndarray) -> None:
        content = numbers.tobytes()
        self.file.write(content)
        self.digest.update(content)

    def close(self) -> str:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        checksum: str = self.digest.hexdigest()
        return checksum


def write_shard(
    folder: Path, name: str, piece: Piece, form: TextForm, encoder: DocumentEncoder, id_type: str
) -> Receipt:
    tokens_file, ends_file = (folder / f"{name}.{suffix}" for suffix in ("tokens", "ends"))
    receipt = Receipt()
    with hidden_sibling(tokens_file) as tokens_aside, hidden_sibling(ends_file) as ends_aside:
        with tokens_aside.open("wb") as tokens_open, ends_aside.open("wb") as ends_open:
            tokens, ends = CheckedFile(file=tokens_open), CheckedFile(file=ends_open)
            documents = encode_documents(
                replace_surrogates(read_piece(piece, form), receipt), encoder, receipt
            )
            while some := [*islice(documents, DOCUMENTS_AT_ONCE)]:
                lengths = np.array([len(ids) for ids in some])
                tokens.write(np.array([*chain.from_iterable(some)], np.dtype(id_type).newbyteorder("<")))
                ends.write((receipt.tokens + np.cumsum(lengths)).astype("<i8"))
                receipt.documents += len(some)
                receipt.tokens += int(lengths.sum())
                receipt.longest = max(receipt.longest, int(lengths.max()))
            receipt.tokens_checksum, receipt.ends_checksum = tokens.close(), ends.close()
        if receipt.documents:
            os.replace(tokens_aside, tokens_file)
            os.replace(ends_aside, ends_file)
            sync(folder)
    return receipt


def replace_surrogates(parts: Iterable[TextPart], receipt: Receipt) -> Iterator[TextPart]:
    """Replace lone surrogates, which JSON can hold and UTF-8 cannot, with question marks."""
    mended = False
    for part in parts:
        try:
            part.text.encode()
        except UnicodeEncodeError:
            part, mended = part._replace(text=part.text.encode(errors="replace").decode()), True
        if part.last:
            receipt.mended += mended
            mended = False
        yield part


def encode_documents(
    parts: Iterable[TextPart], encoder: DocumentEncoder, receipt: Receipt
) -> Iterator[list[int]]:
    """Ids of each non-empty document, between its begin and end tokens."""
    ids: list[int] = []
    begins = True
    for some in in_batches(parts):
        firsts = [begins, *(part.last for part in some[:-1])]
        begins = some[-1].last
        for part, part_ids in zip(some, encode(some, firsts, encoder), strict=True):
            ids += part_ids
            if part.last:
                if ids:
                    yield [*encoder.begin, *ids, encoder.end]
                else:
                    receipt.empty += 1
                ids = []


def encode(parts: list[TextPart], firsts: list[bool], encoder: DocumentEncoder) -> list[list[int]]:
    """If the batch fails, encodes one by one to find the culprit. `firsts`: which parts begin their document."""
    try:
        return encoder.encode([part.text for part in parts], firsts)
    except ValueError:
        for part in parts:
            try:
                encoder.encode([part.text])
            except ValueError as error:
                raise ValueError(f"{part.place}: {error}") from error
        raise


def in_batches(parts: Iterable[TextPart]) -> Iterator[list[TextPart]]:
    some: list[TextPart] = []
    size = 0
    for part in parts:
        some.append(part)
        size += len(part.text)
        if len(some) == PARTS_AT_ONCE or size >= CHARACTERS_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some
