"""A benchmark file of a recipe, and the texts of its rows that must not be in training data.

    against = ["gsm8k/test.jsonl.gz", {path = "mgsm/th.tsv.xz", columns = ["1"], name = "mgsm-th"}]

    [*read_benchmark(Benchmark(path="gsm8k/test.jsonl.gz"))][0] -> BenchmarkRow("test:1", ("Janet’s ducks lay …",))

Rows of .jsonl, .json, .parquet, .csv and .tsv; of .txt each line is one. All may be packed (.gz, .xz, .bz2, .zst).
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from glob import glob, has_magic
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any

from pydantic import Field

from foresail.curate.read.files import default_name
from foresail.data.files import COMPRESSED, excerpt, explaining_damage, open_bytes
from foresail.data.problems.problems import PROMPT_KEYS
from foresail.data.rows import explain_missing, read_json, read_parquet
from foresail.recipe.tables.inputs import reach
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts

OTHER_KEYS = ("premise", "sentence", "ctx", "messages", "conversations", "content", "turns", "prompts")
QUESTION_KEYS = (*PROMPT_KEYS, *OTHER_KEYS)
SEPARATORS = {".csv": ",", ".tsv": "\t"}
KINDS = (".jsonl", ".ndjson", ".json", ".parquet", ".csv", ".tsv", ".txt")
LONGEST_CELL = 2**26


class Tabs(csv.excel_tab):
    """Quotes are letters: of many such files the first cell with one would swallow the rest."""

    quoting = csv.QUOTE_NONE


DIALECTS = {",": csv.excel, "\t": Tabs}


class Benchmark(CheckedPart):
    """A file whose rows must not be in training data."""

    path: str = Field(description="file of rows: .jsonl, .json, .parquet, .csv, .tsv, or .txt; packed or not")
    name: str = Field("", description="in reasons and figures; default: the file's name without endings")
    columns: Texts = Field(
        (),
        description="columns that are looked for, each by itself; of .csv and .tsv also their numbers, from 1; "
        "default: the first of prompt, problem, question, … that is there",
    )

    def mistakes(self) -> Iterator[str]:
        if kind_of(Path(self.path)) not in KINDS:
            yield f"{self.path} is none of {', '.join(KINDS)}; convert it to one of these"

    @property
    def short_name(self) -> str:
        return self.name or default_name(self.path).removesuffix(".csv").removesuffix(".tsv")

    @property
    def long_name(self) -> str:
        """With the folder, where two files have one name."""
        return self.name or f"{Path(self.path).absolute().parent.name}/{self.short_name}"


def benchmark_files(benchmarks: Iterable[Benchmark]) -> list[Benchmark]:
    """One for each file, with a name: gsm8k/test and math/test where two files are called test."""
    files = []
    for benchmark in benchmarks:
        paths = (
            sorted(glob(benchmark.path, recursive=True)) if has_magic(benchmark.path) else [benchmark.path]
        )
        if not paths:
            raise ValueError(f"against: no file matches {benchmark.path}")
        files += [benchmark.model_copy(update={"path": path}) for path in paths]
    names = [benchmark.short_name for benchmark in files]
    return [
        benchmark.model_copy(update={"name": name if names.count(name) == 1 else benchmark.long_name})
        for benchmark, name in zip(files, names, strict=True)
    ]


@dataclass(frozen=True)
class BenchmarkRow:
    """`place`: "gsm8k:17", the 17th row."""

    place: str
    texts: tuple[str, ...]


def kind_of(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")


def read_benchmark(benchmark: Benchmark) -> list[BenchmarkRow]:
    path = Path(benchmark.path)
    if not path.is_file():
        raise ValueError(explain_missing(path))
    rows = []
    for number, columns in enumerate(read_columns(path, benchmark.columns), 1):
        texts = tuple(texts_of(columns, benchmark.columns))
        rows.append(BenchmarkRow(f"{benchmark.short_name}:{number}", texts))
        if not texts and number == 1:
            needed = " or ".join(benchmark.columns or QUESTION_KEYS)
            raise ValueError(
                f"{path}: its first row has no text in {needed}; it has {', '.join(columns) or 'nothing'}; "
                "write columns"
            )
    if not rows:
        raise ValueError(f"{path} has no rows")
    return rows


def read_columns(path: Path, wanted: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    kind = kind_of(path)
    if kind == ".parquet":
        rows: Iterable[Any] = (row for _, row in read_parquet(path))
    elif kind in SEPARATORS:
        rows = read_table(path, SEPARATORS[kind], {*wanted, *QUESTION_KEYS})
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
    """{"version": 1, "data": [{…}, …]} -> its rows; of any other object, itself."""
    if isinstance(row, Mapping) and not {*row} & {*QUESTION_KEYS}:
        lists = [
            value
            for value in row.values()
            if isinstance(value, list) and value and isinstance(value[0], dict)
        ]
        if len(lists) == 1 and len(lists[0]) > 1:
            return lists[0]
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


def texts_of(columns: Mapping[str, Any], wanted: Iterable[str]) -> Iterator[str]:
    if not wanted:
        name = next((name for name in QUESTION_KEYS if strings_in(columns.get(name))), None)
        wanted = ("1",) if name is None and "1" in columns else () if name is None else (name,)
    for name in wanted:
        if text := "\n".join(strings_in(reach(columns, name, None))):
            yield text


def strings_in(value: Any) -> list[str]:
    """All texts in a value, but for roles and kinds of messages."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, Mapping):
        return [
            text
            for name, item in value.items()
            if name not in ("role", "from", "type")
            for text in strings_in(item)
        ]
    if isinstance(value, list | tuple):
        return [text for item in value for text in strings_in(item)]
    return []
