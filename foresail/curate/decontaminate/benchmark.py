"""A benchmark file of a recipe, and the texts of its rows that must not be in training data.

    against = ["gsm8k/test.jsonl.gz", {path = "mgsm/th.tsv.xz", columns = ["1"], name = "mgsm-th"}]

    read_benchmark(Benchmark(path="gsm8k/test.jsonl.gz"))[0] -> BenchmarkRow("test:1", ("Janet’s ducks lay …",))

Rows of .jsonl, .json, .parquet, .csv and .tsv; of .txt each line is one. All may be packed (.gz, .xz, .bz2, .zst).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import Any

from pydantic import Field

from foresail.curate.decontaminate.questions import QUESTION_KEYS, has_words, named_texts, questions
from foresail.curate.decontaminate.tables import KINDS, kind_of, read_columns
from foresail.curate.read.files import default_name
from foresail.data.rows import explain_missing
from foresail.recipe.tables.part import CheckedPart
from foresail.recipe.tables.values import Texts


class Benchmark(CheckedPart):
    """A file whose rows must not be in training data."""

    path: str = Field(description="file of rows: .jsonl, .json, .parquet, .csv, .tsv, or .txt; packed or not")
    name: str = Field("", description="in reasons and figures; default: the file's name without endings")
    columns: Texts = Field(
        (),
        description="columns that are looked for, each by itself, and short ones together; of .csv and .tsv also "
        "their numbers, from 1; default: the first of prompt, problem, question, … that has words, with choices",
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
    """`place`: "gsm8k:17", the 17th row; each of `texts` is looked for by itself, `parts` together."""

    place: str
    texts: tuple[str, ...]
    parts: tuple[str, ...] = ()


def read_benchmark(benchmark: Benchmark) -> list[BenchmarkRow]:
    path = Path(benchmark.path)
    if not path.is_file():
        raise ValueError(explain_missing(path))
    rows: list[BenchmarkRow] = []
    names: list[str] = []
    for number, columns in enumerate(read_columns(path, benchmark.columns), 1):
        rows.append(row_of(columns, benchmark.columns, f"{benchmark.short_name}:{number}"))
        names = names or [*map(str, columns)]
    if not rows:
        raise ValueError(f"{path} has no rows")
    needed = " or ".join(benchmark.columns or QUESTION_KEYS)
    columns_are = f"its columns are {', '.join(names) or 'nothing'}; write columns"
    if not rows[0].texts:
        raise ValueError(f"{path}: its first row has no text in {needed}; {columns_are}")
    if not any(has_words(row.texts) for row in rows):
        raise ValueError(f"{path}: no row has two words in {needed}; {columns_are}")
    return rows


def row_of(columns: Mapping[str, Any], names: Iterable[str], place: str) -> BenchmarkRow:
    if names:
        texts = tuple(named_texts(columns, names))
        return BenchmarkRow(place, texts, texts if len(texts) > 1 else ())
    asked = questions(columns)
    parts = tuple(
        part for question in asked if question.choices for part in (question.text, *question.choices)
    )
    return BenchmarkRow(place, tuple(text for question in asked for text in question.texts), parts)
