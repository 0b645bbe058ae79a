"""Texts to hide needles in, from the files that corpora are made of."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from foresail.data.corpus.documents import TextForm, cut_pieces, find_files, read_piece
from foresail.data.long_context.filler import Filler, TextFiller, made_filler

PIECE_BYTES = 2**26


def read_texts(path: Path) -> Iterator[str]:
    """Documents of a JSONL, parquet or text file, or of a folder of them, compressed too."""
    parts: list[str] = []
    for file in find_files([str(path)]):
        for piece in cut_pieces(file, PIECE_BYTES):
            for part in read_piece(piece, TextForm()):
                parts.append(part.text)
                if part.last:
                    yield "".join(parts)
                    parts = []


def open_filler(source: str | None) -> Filler:
    """Sentences of these files; None: made ones."""
    return made_filler if source is None else TextFiller(read_texts(Path(source)))
