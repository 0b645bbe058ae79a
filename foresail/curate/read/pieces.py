"""Cuts a source into pieces that are read separately: byte ranges of lines, row groups, runs of small files.

cut_source(Source(path="data")) -> "data/a.jsonl, 0 to 67108864", …, "data/b.html and 255 more up to data/z.html"

The cuts depend on names and sizes of the files, and on nothing of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from foresail.curate.read.budget import Damaged
from foresail.curate.read.files import damage_of_stream, list_files, open_unpacked
from foresail.curate.read.kinds import MEDIA_TYPES, SNIFFED, SUFFIXES, kind_by_content, kind_by_suffix
from foresail.curate.read.made import cut_generator
from foresail.curate.read.piece import ReadPiece, Source
from foresail.data.made.generators import names_generator

PIECE_BYTES = 64 * 2**20
FILES_AT_ONCE = 256
WHOLE = frozenset(MEDIA_TYPES)  # kinds of which one file is one document


def cut_source(source: Source) -> Iterator[ReadPiece]:
    seen: set[Path] = set()
    for path in source.path:
        if names_generator(path):
            yield from cut_generator(source, path)
            continue
        folder, names = list_files(path)
        run: list[tuple[str, str, int]] = []  # small files that follow each other: name, kind, bytes
        any_readable = False
        for name in names:
            kind = kind_of(folder / name, source, is_only=Path(path) == folder / name)
            if kind is None:
                continue
            any_readable = True
            if folder / name in seen:
                raise ValueError(f"{folder / name} is named twice; its documents would be there twice")
            seen.add(folder / name)
            size = size_of(folder / name)
            if run and (
                kind != run[0][1] or len(run) >= FILES_AT_ONCE or sum(file[2] for file in run) >= PIECE_BYTES
            ):
                yield whole_piece(source, folder, run)
                run = []
            if kind in WHOLE:
                run.append((name, kind, size))
            else:
                yield from cut_file(source, kind, folder, name, size)
        if run:
            yield whole_piece(source, folder, run)
        if not any_readable:
            known = ", ".join(suffix for suffixes in SUFFIXES.values() for suffix in suffixes)
            raise ValueError(
                f"{path} holds nothing that can be read ({known}); name other files, or set kind"
            )


def whole_piece(source: Source, folder: Path, run: list[tuple[str, str, int]]) -> ReadPiece:
    return ReadPiece(source, run[0][1], str(folder), tuple(name for name, _, _ in run))


def cut_file(source: Source, kind: str, folder: Path, name: str, size: int) -> Iterator[ReadPiece]:
    path = folder / name
    ranges: list[tuple[int, int | None]] = [(0, None)]
    if kind == "jsonl" and path.suffix.lower() in SUFFIXES["jsonl"] and size > PIECE_BYTES:
        ranges = [(start, start + PIECE_BYTES) for start in range(0, size, PIECE_BYTES)]
    elif kind == "parquet":
        from foresail.data.corpus.documents import cut_parquet  # which imports tokenizers

        with suppress(ValueError, OSError):  # else one piece, of which the reader makes one drop
            ranges = [(piece.start, piece.stop) for piece in cut_parquet(path, PIECE_BYTES)] or ranges
    for start, stop in ranges:
        yield ReadPiece(source, kind, str(folder), (name,), start, stop)


def kind_of(path: Path, source: Source, *, is_only: bool) -> str | None:
    """Files of a folder that have no known suffix are read where their first bytes tell their kind."""
    if source.kind != "auto":
        return source.kind
    if (kind := kind_by_suffix(path)) is not None:
        return kind
    try:
        with open_unpacked(path) as stream, damage_of_stream():
            kind = kind_by_content(stream.read(SNIFFED))
    except Damaged:
        return None
    # README, LICENSE and Makefile lie in many folders
    return kind if is_only or kind != "text" else None


def size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # it vanished, or is a link to itself: its reader says so
        return 0
