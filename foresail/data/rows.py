"""Rows of a data file (JSONL, JSON, parquet; compressed too) or of a folder of them, each with its place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from io import TextIOWrapper
from pathlib import Path
from typing import Any

from foresail.data.files import excerpt, explaining_damage, open_bytes, parquet_rows, parse_json
from foresail.recipe.tables.inputs import SHARDS, SUFFIXES, data_files

ID_KEYS = ("id", "_id", "unique_id", "problem_id", "task_id", "uid")


@dataclass(frozen=True, kw_only=True)
class Row:
    """One record of a file; `place` is FILE:LINE, which editors understand: "train.jsonl:17". Lines count from
    1."""

    place: str
    columns: Mapping[str, Any]


def read_rows(path: Path) -> Iterator[Row]:
    """The rows in file order, lazily; of a folder file after file. A file without any is an error."""
    if path.is_dir() and (files := data_files(path)):
        for file in files:
            yield from read_rows(file)
        return
    if not path.is_file():
        raise FileNotFoundError(explain_missing(path))
    if not path.name.endswith(SUFFIXES):
        raise ValueError(f"{path} is none of {', '.join(SUFFIXES)}; convert it to one of these")
    empty = True
    for place, columns in read_parquet(path) if path.suffix == ".parquet" else read_json(path):
        empty = False
        if not isinstance(columns, dict):
            raise ValueError(f"{place}: expected an object with named columns, found {excerpt(columns)}")
        yield Row(place=place, columns=columns)
    if empty:
        raise ValueError(f"{path} is empty; it needs at least one row")


def read_json(path: Path) -> Iterator[tuple[str, Any]]:
    """One value a line, or one list of them, whatever the suffix says."""
    with (
        explaining_damage(path),
        open_bytes(path) as binary,
        TextIOWrapper(binary, encoding="utf-8-sig") as file,
    ):
        for number, line in enumerate(file, 1):
            if number == 1 and line.lstrip().startswith("["):
                yield from parse_list(path, line + file.read())
                return
            if line.strip():
                place = f"{path}:{number}"
                yield place, parse_json(line, place)


def read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    yield from ((f"{path}, row {number}", row) for number, row in enumerate(parquet_rows(path), 1))


def parse_list(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    try:
        items = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}:{error.lineno}: not JSON ({error.msg}); correct the file") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read ({error}); correct the file") from error
    yield from ((f"{path}, item {number}", item) for number, item in enumerate(items, 1))


def thinking_of(row: Row) -> bool | None:
    """The mode that a row asks for: enable_thinking, or thinking where that is true or false and no text."""
    mode = row.columns.get("enable_thinking")
    if mode is not None and not isinstance(mode, bool):
        raise ValueError(f"{row.place}: enable_thinking must be true or false, found {excerpt(mode)}")
    other = row.columns.get("thinking")
    return other if mode is None and isinstance(other, bool) else mode


def id_of(row: Row) -> str | None:
    return next((str(row.columns[key]) for key in ID_KEYS if row.columns.get(key) is not None), None)


def choose_form(row: Row, forms: Iterable[tuple[str, ...]], what: str) -> tuple[str, ...]:
    """The first of the forms whose columns the row has, all of them; `what` is missing without any."""
    for form in forms:
        if all(row.columns.get(name) is not None for name in form):
            return form
    *others, last = [" and ".join(form) for form in forms]
    names = tuple(name for form in forms for name in form)
    raise ValueError(
        f"{row.place}: no {what}; needs {', '.join(others)}, or {last}; {name_columns(row.columns, names)}"
    )


def name_columns(columns: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    """For an error message: the columns that are there, and the nearest to the missing ones."""
    filled = [name for name, value in columns.items() if value is not None or name not in keys]
    near = {match for name in keys for match in get_close_matches(name, filled, n=1, cutoff=0.7)}
    described = [f"{name} (null)" if value is None else name for name, value in columns.items()]
    message = f"found columns {', '.join(described) or '(none)'}"
    return message + (f" (did you mean {' or '.join(sorted(near))}?)" if near else "")


def explain_missing(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder without data files ({', '.join(SHARDS)}); name a file or another folder"
    near = []
    if path.parent.is_dir():
        near = get_close_matches(path.name, [entry.name for entry in path.parent.iterdir()], n=3)
    hint = f"; near it: {', '.join(near)}" if near else f" (looked from {Path.cwd()})"
    return f"data file {path} does not exist{hint}"
