"""The files of block lists: one entry in a line, `#` begins a comment, plain or packed with gzip or xz.

[*read_entries(Path("hosts.txt"))] -> ["example.org", "example.com/shop"]
"""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Iterable, Iterator
from glob import glob, has_magic
from pathlib import Path
from typing import IO, cast

HOW = "write a path to a file of entries, one in a line, or a pattern like lists/*.txt"


def list_files(paths: Iterable[str]) -> list[Path]:
    """The files that paths and patterns name, in order. A folder is its files."""
    files: list[Path] = []
    for path in paths:
        matches = sorted(map(Path, glob(path, recursive=True))) if has_magic(path) else [Path(path)]
        if not matches or not all(match.exists() for match in matches):
            raise ValueError(f"there is no file {path}; {HOW}")
        for match in matches:
            files += sorted(match.iterdir()) if match.is_dir() else [match]
    return [file for file in files if file.is_file() and not file.name.startswith(".")]


def mistakes_in(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        try:
            if not list_files([path]):
                yield f"the folder {path} has no files; {HOW}"
        except ValueError as error:
            yield str(error)


def read_entries(file: Path) -> Iterator[str]:
    """Lines without comments and spaces around them; empty ones are left out."""
    try:
        with open_text(file) as lines:
            for number, line in enumerate(lines):
                entry = without_comment(line.removeprefix("\ufeff") if number == 0 else line)
                if entry:
                    yield entry
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is not UTF-8: {error}; write it again with iconv -t utf-8") from None
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from None


def open_text(file: Path) -> IO[str]:
    if file.suffix == ".gz":
        return cast(IO[str], gzip.open(file, "rt", encoding="utf-8"))
    if file.suffix == ".xz":
        return cast(IO[str], lzma.open(file, "rt", encoding="utf-8"))
    return file.open(encoding="utf-8")


def without_comment(line: str) -> str:
    """ "example.org  # ads" -> "example.org"; a # inside of a word is none."""
    if line.startswith("#"):
        return ""
    place = line.find(" #")
    return (line if place < 0 else line[:place]).strip()
