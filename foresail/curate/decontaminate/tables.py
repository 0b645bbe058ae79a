"""The rows of a benchmark file, as columns: .jsonl, .json, .parquet, .csv, .tsv; of .txt each line is a row.

next(read_columns(Path("mgsm/th.tsv.xz"), ())) -> {"1": "เป็ดของเจเน็ต…", "2": "18"}
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any

from foresail.curate.decontaminate.questions import QUESTION_KEYS
from foresail.data.files import COMPRESSED, excerpt, explaining_damage, open_bytes
from foresail.data.rows import read_json, read_parquet

SEPARATORS = {".csv": ",", ".tsv": "\t"}
KINDS = (".jsonl", ".ndjson", ".json", ".parquet", ".csv", ".tsv", ".txt")
LONGEST_CELL = 2**26


class Tabs(csv.excel_tab):
    """Quotes are letters: of many such files the first cell with one would swallow the rest."""

    quoting = csv.QUOTE_NONE


DIALECTS = {",": csv.excel, "\t": Tabs}


def kind_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")


def read_columns(path: Path, names: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """`names`: columns that the header of a .csv or .tsv may have, beside those of questions."""
    kind = kind_of(path)
    if kind == ".parquet":
        rows: Iterable[Any] = (row for _, row in read_parquet(path))
    elif kind in SEPARATORS:
        rows = read_table(path, SEPARATORS[kind], {*names, *QUESTION_KEYS})
    elif kind == ".txt":
        rows = ({"text": line} for line in read_lines(path))
    else:
        rows = chain.from_iterable(map(unwrapped, (row for _, row in read_json(path))))
    for number, row in enumerate(rows, 1):
        if isinstance(row, str):
            row = {"text": row}
        if not isinstance(row, Mapping):
            raise ValueError(f"{path}, row {number}: expected an object with columns, found {excerpt(row)}")
        yield row


def unwrapped(row: Any) -> list[Any]:
    """{"version": 1, "data": [{…}, …]} -> its rows, and so of {"a": {…}, "b": {…}}; of any other object, itself."""
    if isinstance(row, Mapping) and not {str(name).lower() for name in row} & {*QUESTION_KEYS}:
        lists = [
            value
            for value in row.values()
            if isinstance(value, list) and value and isinstance(value[0], dict)
        ]
        if len(lists) == 1 and len(lists[0]) > 1:
            return lists[0]
        if len(row) > 1 and all(isinstance(value, Mapping) for value in row.values()):
            return [*row.values()]
    return [row]


def read_lines(path: Path) -> Iterator[str]:
    with (
        explaining_damage(path),
        open_bytes(path) as binary,
        TextIOWrapper(binary, encoding="utf-8-sig") as lines,
    ):
        yield from (line.strip() for line in lines if line.strip())


def read_table(path: Path, separator: str, names: Iterable[str]) -> Iterator[dict[str, str]]:
    """Columns have their number as a name, from 1, and where the first row names one of `names`, its names too."""
    csv.field_size_limit(min(LONGEST_CELL, sys.maxsize))
    known = {name.lower() for name in names if not name.isdecimal()}
    with (
        explaining_damage(path),
        open_bytes(path) as binary,
        TextIOWrapper(binary, encoding="utf-8-sig", newline="") as lines,
    ):
        header: list[str] | None = None
        try:
            for number, cells in enumerate(csv.reader(lines, DIALECTS[separator]), 1):
                if number == 1 and known & {cell.strip().lower() for cell in cells}:
                    header = [cell.strip() for cell in cells]
                    continue
                if any(cells):
                    numbered = {str(place): cell for place, cell in enumerate(cells, 1)}
                    yield {**numbered, **dict(zip(header, cells, strict=False))} if header else numbered
        except csv.Error as error:
            raise ValueError(f"{path}, row {number}: {error}; correct it") from None
