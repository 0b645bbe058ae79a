"""Texts of source files, in their order: JSONL, parquet, plain text; .gz, .xz, .bz2 and .zst too.

A file is cut into pieces that are read separately: lines of a JSONL file that begin in a range of its bytes, row
groups of a parquet file, or all of a compressed or text file. The cuts depend on the file alone.

Texts come in parts, so that a long one is never whole in memory: ("first part", False), ("the rest", True).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

from foresail.data.files import (
    COMPRESSED,
    excerpt,
    explaining_damage,
    open_bytes,
    open_parquet,
    parquet_rows,
    parse_json,
)
from foresail.data.rows import explain_missing, name_columns
from foresail.tokenizer.parts import LONGEST_PART, cut_parts

LINES, TEXTS, PARQUET = (".jsonl", ".ndjson", ".json"), (".txt", ".text", ".md"), (".parquet",)
KEYS = ("text", "content")  # columns that are looked for
SAMPLE = 2**20  # bytes of both ends in a file's checksum


class TextPart(NamedTuple):
    """A part of a document's text; `place` locates it in error messages."""

    text: str
    last: bool
    place: str


@dataclass(frozen=True, kw_only=True)
class Piece:
    """Bytes of a file of lines, or row groups of a parquet file; `stop` None: all of the file."""

    file: str
    start: int = 0
    stop: int | None = None

    def __str__(self) -> str:
        return self.file if self.stop is None else f"{self.file}, {self.start} to {self.stop}"


@dataclass(frozen=True, kw_only=True)
class TextForm:
    """`key`: the column that holds the text, default: text or content. `separator`: a line of a text file after
    which another document begins; without one the file is one document.
    """

    key: str | None = None
    separator: str | None = None


def find_files(sources: list[str]) -> list[Path]:
    """The named files; of a folder all readable files below it, sorted by name."""
    files: list[Path] = []
    for source in map(Path, sources):
        if source.is_dir():
            below = sorted(path for path in source.rglob("*") if path.is_file() and kind_of(path) is not None)
            if not below:
                raise ValueError(f"{source} holds no file of texts ({known_suffixes()}); name other files")
            files += below
        elif not source.is_file():
            raise FileNotFoundError(explain_missing(source))
        elif kind_of(source) is None:
            raise ValueError(f"{source} is none of {known_suffixes()}; convert it to one of these")
        else:
            files.append(source)
    if doubled := [path for path, times in Counter(files).items() if times > 1]:
        raise ValueError(f"{doubled[0]} is named twice; its documents would be learned twice as often")
    return files


def passed_over(sources: list[str]) -> list[Path]:
    """Files below the folders that `find_files` does not read."""
    folders = [folder for folder in map(Path, sources) if folder.is_dir()]
    return sorted(
        path
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file() and kind_of(path) is None and not path.name.startswith(".")
    )


def known_suffixes() -> str:
    return f"{', '.join((*LINES, *TEXTS, *PARQUET))}, also with {', '.join(COMPRESSED)}"


def kind_of(path: Path) -> str | None:
    """kind_of("a.jsonl.gz") -> ".jsonl"; None for files that hold no text."""
    suffixes = path.suffixes
    if suffixes and suffixes[-1] in COMPRESSED:
        suffixes = suffixes[:-1]
        if suffixes[-1:] == [*PARQUET]:
            return None
    return suffixes[-1] if suffixes and suffixes[-1] in (*LINES, *TEXTS, *PARQUET) else None


def describe_file(path: Path) -> dict[str, Any]:
    """What identifies a file: its size, and a checksum of its two ends."""
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(SAMPLE))
        file.seek(max(0, size - SAMPLE))
        digest.update(file.read(SAMPLE))
    return {"path": str(path), "bytes": size, "checksum": digest.hexdigest()}


def cut_pieces(path: Path, piece_bytes: int) -> Iterator[Piece]:
    """At least one; pieces of one file follow each other."""
    if path.suffix in PARQUET:
        yield from cut_parquet(path, piece_bytes)
    elif path.suffix in LINES:
        for start in range(0, max(1, path.stat().st_size), piece_bytes):
            yield Piece(file=str(path), start=start, stop=start + piece_bytes)
    else:
        yield Piece(file=str(path))


def cut_parquet(path: Path, piece_bytes: int) -> Iterator[Piece]:
    with open_parquet(path) as file:
        groups = [file.metadata.row_group(n).total_byte_size for n in range(file.metadata.num_row_groups)]
    start = size = 0
    for number, group in enumerate(groups):
        size += group
        if size >= piece_bytes or number + 1 == len(groups):
            yield Piece(file=str(path), start=start, stop=number + 1)
            start, size = number + 1, 0


def read_piece(piece: Piece, form: TextForm) -> Iterator[TextPart]:
    path = Path(piece.file)
    kind = kind_of(path)
    with explaining_damage(path):
        if kind in PARQUET:
            yield from text_parts(read_groups(piece), form.key)
        elif kind in TEXTS:
            yield from read_text(path, form.separator)
        else:
            yield from text_parts(read_lines(piece), form.key)


def text_parts(rows: Iterator[tuple[str, Any]], key: str | None) -> Iterator[TextPart]:
    for place, row in rows:
        parts = [*cut_parts(find_text(row, key, place))]
        for number, part in enumerate(parts, start=1):
            yield TextPart(part, number == len(parts), place)


def find_text(row: Any, key: str | None, place: str) -> str:
    if isinstance(row, str) and key is None:
        return row
    if isinstance(row, list):
        raise ValueError(f"{place}: found a list, {excerpt(row)}; write one object a line instead (JSONL)")
    if not isinstance(row, dict):
        raise ValueError(f"{place}: expected an object with a text, found {excerpt(row)}; correct this line")
    keys = KEYS if key is None else (key,)
    column = next((name for name in keys if name in row), None)
    if column is None:
        raise ValueError(
            f"{place}: no column {' or '.join(keys)}; {name_columns(row, keys)}; name the text's column "
            "with --text-key"
        )
    text = row[column]
    if not isinstance(text, str):
        raise ValueError(
            f"{place}: {column} must be text, found {excerpt(text)}; correct it, or use --text-key"
        )
    return text


def read_lines(piece: Piece) -> Iterator[tuple[str, Any]]:
    """Those that begin between `start` and `stop`; a line belongs to one piece, however long it is."""
    path = Path(piece.file)
    with open_bytes(path) as file:
        place = piece.start
        if place:
            file.seek(place - 1)
            place += len(file.readline()) - 1
        while piece.stop is None or place < piece.stop:
            line = file.readline()
            if not line:
                return
            first, place = place, place + len(line)
            line = line.removeprefix(b"\xef\xbb\xbf") if first == 0 else line
            if line.strip():
                where = f"{path}, byte {first}"
                yield where, parse_json(decode(line, where), where)


def decode(line: bytes, place: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"{place}: not UTF-8 text ({error}); save the file as UTF-8") from error


def read_groups(piece: Piece) -> Iterator[tuple[str, Any]]:
    path = Path(piece.file)
    for number, row in enumerate(parquet_rows(path, [*range(piece.start, piece.stop or 0)]), start=1):
        yield f"{path}, row {number} of groups {piece.start} to {piece.stop}", row


def read_text(path: Path, separator: str | None) -> Iterator[TextPart]:
    """Documents without the separators; those of white space alone count as empty."""
    part: list[str] = []
    size, begins = 0, True  # a line: the rest of a long one is no separator
    with open_bytes(path) as binary, TextIOWrapper(binary, encoding="utf-8-sig", newline="") as file:
        while chunk := file.readline(LONGEST_PART):
            is_line, begins = begins, chunk.endswith(("\n", "\r"))
            if separator is not None and is_line and chunk.strip() == separator.strip():
                yield TextPart("".join(part), True, str(path))
                part, size = [], 0
                continue
            if size + len(chunk) > LONGEST_PART and part:
                yield TextPart("".join(part), False, str(path))
                part, size = [], 0
            part.append(chunk)
            size += len(chunk)
    yield TextPart("".join(part), True, str(path))
