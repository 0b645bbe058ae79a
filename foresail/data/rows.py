"""Rows of a data file (JSONL, JSON, parquet; gzip too), each with its place for error messages."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".json.gz", ".parquet")
ID_KEYS = ("id", "_id", "unique_id", "problem_id", "task_id", "uid")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One record of a file; `place` is what an editor understands: "train.jsonl:17". All count from 1."""

    place: str
    columns: Mapping[str, Any]


def read_rows(path: Path) -> Iterator[Row]:
    """The rows in file order, lazily; a file without any is an error."""
    if not path.is_file():
        raise FileNotFoundError(explain_missing(path))
    if not path.name.endswith(SUFFIXES):
        raise ValueError(f"{path} is none of {', '.join(SUFFIXES)}; convert it to one of these")
    rows = read_parquet(path) if path.suffix == ".parquet" else read_json(path)
    empty = True
    for place, columns in rows:
        empty = False
        if not isinstance(columns, dict):
            raise ValueError(f"{place}: expected an object with named columns, found {excerpt(columns)}")
        yield Row(place=place, columns=columns)
    if empty:
        raise ValueError(f"{path} is empty; it needs at least one row")


def read_json(path: Path) -> Iterator[tuple[str, Any]]:
    """One value a line, or one list of them, whatever the suffix says."""
    opener = gzip.open if path.suffix == ".gz" else open
    try:
        with opener(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if number == 1 and line.lstrip().startswith("["):
                    yield from parse_list(path, line + file.read())
                    return
                if line.strip():
                    yield f"{path}:{number}", parse_line(path, number, line)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is a damaged gzip file ({error}); fetch it again") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8 text ({error}); save it as UTF-8") from error


def parse_line(path: Path, number: int, line: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path}:{number}: not JSON ({error.msg} at column {error.colno}): {excerpt(line.strip())}; "
            "mend or delete this line"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, lists in lists in …
        raise ValueError(f"{path}:{number}: cannot be read ({error}); mend or delete this line") from error


def parse_list(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        items = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not JSON ({error.msg}); mend the file") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read ({error}); mend the file") from error
    yield from ((f"{path}, item {number}", item) for number, item in enumerate(items, 1))


def read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("parquet files need pyarrow: pip install 'foresail[parquet]'") from error
    try:
        number = 0
        with pyarrow.parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1024):
                for columns in batch.to_pylist():
                    number += 1
                    yield f"{path}, row {number}", columns
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} is not a readable parquet file ({error}); fetch it again") from error


def thinking_of(row: Row) -> bool | None:
    """The mode that a row asks for: enable_thinking, or thinking where that is true or false and no text."""
    mode = row.columns.get("enable_thinking")
    if mode is not None and not isinstance(mode, bool):
        raise ValueError(f"{row.place}: enable_thinking must be true or false, found {excerpt(mode)}")
    other = row.columns.get("thinking")
    return other if mode is None and isinstance(other, bool) else mode


def id_of(row: Row) -> str | None:
    return next((str(row.columns[key]) for key in ID_KEYS if row.columns.get(key) is not None), None)


def name_columns(columns: Mapping[str, Any], wanted: tuple[str, ...]) -> str:
    """The part of an error message that helps: what is there, and which of it may be meant."""
    filled = [name for name, value in columns.items() if value is not None or name not in wanted]
    near = {match for name in wanted for match in get_close_matches(name, filled, n=1, cutoff=0.7)}
    told = [f"{name} (null)" if value is None else name for name, value in columns.items()]
    found = f"found columns {', '.join(told) or '(none)'}"
    return found + (f" (did you mean {' or '.join(sorted(near))}?)" if near else "")


def explain_missing(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder; name a file in it"
    near = []
    if path.parent.is_dir():
        near = get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=3)
    hint = f"; near it: {', '.join(near)}" if near else f" (looked from {Path.cwd()})"
    return f"data file {path} does not exist{hint}"


def excerpt(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
