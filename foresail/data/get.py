"""Well-known data sets as JSONL files: fetched through `datasets`, or converted from a folder of downloads.

    foresail data get gsm8k                    -> data/gsm8k/train.jsonl, data/gsm8k/test.jsonl
    foresail data get gsm8k --from DOWNLOADS   the same from files that are there already

Columns are unchanged. Rows without an answer are left out and counted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from foresail.data.chats.conversations import to_conversation
from foresail.data.problems.problems import ANSWER_KEYS, choose_key, to_answer
from foresail.data.rows import Row, read_rows
from foresail.recipe.tables.inputs import SUFFIXES, reach

Columns = Mapping[str, Any]


def has_answer(row: Row) -> bool:
    return bool(to_answer(reach(row.columns, choose_key(row, ANSWER_KEYS, "answer"))))


def is_conversation(row: Row) -> bool:
    try:
        return bool(to_conversation(row))
    except ValueError:
        return False


@dataclass(frozen=True, kw_only=True)
class KnownData:
    """A data set by its name on the Hub. `splits` are the names there, by the names of our files."""

    hub: str
    about: str
    config: str | None = None
    splits: Mapping[str, str] = field(default_factory=lambda: {"train": "train", "test": "test"})
    # of a folder that holds all rows in one file: which split a row is in
    split_of: Callable[[Columns], str | None] | None = None
    usable: Callable[[Row], bool] = has_answer


def mbpp_split(columns: Columns) -> str | None:
    """By its authors: tasks 11 to 510 are the test, 601 to 974 for training."""
    number = int(columns["task_id"])
    return "test" if 11 <= number <= 510 else "train" if number >= 601 else None


KNOWN = {
    "gsm8k": KnownData(hub="openai/gsm8k", config="main", about="grade-school word problems"),
    "math": KnownData(
        hub="DigitalLearningGmbH/MATH-lighteval", about="MATH, competition problems with levels 1 to 5"
    ),
    "math500": KnownData(
        hub="HuggingFaceH4/MATH-500", splits={"test": "test"}, about="500 problems of MATH's test"
    ),
    "aime24": KnownData(
        hub="HuggingFaceH4/aime_2024", splits={"test": "train"}, about="the 30 problems of AIME 2024"
    ),
    "deepscaler": KnownData(
        hub="agentica-org/DeepScaleR-Preview-Dataset",
        splits={"train": "train"},
        about="40,000 competition problems",
    ),
    "mbpp": KnownData(
        hub="google-research-datasets/mbpp",
        config="full",
        split_of=mbpp_split,
        about="short Python programs with tests",
    ),
    "leetcode": KnownData(
        hub="newfacade/LeetCodeDataset",
        splits={"train": "train"},
        about="LeetCode problems with tests and solutions",
    ),
    "humaneval": KnownData(
        hub="openai/openai_humaneval", splits={"test": "test"}, about="164 Python functions with tests"
    ),
    "alpaca": KnownData(
        hub="tatsu-lab/alpaca",
        splits={"train": "train"},
        usable=is_conversation,
        about="52,000 instructions and answers, for SFT",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """A split: written, already there (`rows` is None), or `missing` from the folder."""

    path: Path
    rows: int | None = None
    left_out: int = 0
    missing: str = ""

    def __str__(self) -> str:
        if self.missing:
            return f"{self.path}: not written; {self.missing}"
        if self.rows is None:
            return f"{self.path}: already there; remove it to fetch it anew"
        without = f", {self.left_out:,} without an answer left out" if self.left_out else ""
        return f"{self.path}: {self.rows:,} rows{without}"


class NoSuchSplit(ValueError):
    """A folder holds no file of a split."""


def get(name: str, root: Path, folder: Path | None = None) -> list[Fetched]:
    """Write every split as root/NAME/SPLIT.jsonl; an existing file is left alone."""
    if name not in KNOWN:
        near = get_close_matches(name, KNOWN, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"unknown data set {name!r}; {hint}known are {', '.join(KNOWN)}")
    splits = [get_split(name, KNOWN[name], split, root, folder) for split in KNOWN[name].splits]
    if all(fetched.missing for fetched in splits):
        raise NoSuchSplit(splits[0].missing)
    return splits


def get_split(name: str, known: KnownData, split: str, root: Path, folder: Path | None) -> Fetched:
    path = root / name / f"{split}.jsonl"
    if path.exists():
        return Fetched(path=path)
    rows = read_hub(name, known, split) if folder is None else read_folder(known, split, folder)
    try:
        return write(path, rows, known.usable)
    except NoSuchSplit as error:
        return Fetched(path=path, missing=str(error))


def write(path: Path, rows: Iterable[Row], usable: Callable[[Row], bool]) -> Fetched:
    lines, left_out = [], 0
    for row in rows:
        if usable(row):
            lines.append(json.dumps(dict(row.columns), ensure_ascii=False, default=str) + "\n")
        else:
            left_out += 1
    if not lines:
        raise ValueError(f"no row of {path.stem} has an answer, {left_out} have none; is it the right data?")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_file = path.with_name(f".{path.name}.part")
    partial_file.write_text("".join(lines), encoding="utf-8")
    partial_file.replace(path)
    return Fetched(path=path, rows=len(lines), left_out=left_out)


# Where rows come from.


def read_hub(name: str, known: KnownData, split: str) -> Iterator[Row]:
    from_folder = f"or bring its files yourself: foresail data get {name} --from FOLDER"
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise ImportError(
            f"{name} is fetched by the library datasets: pip install 'foresail[data]'; {from_folder}"
        ) from error
    try:
        rows = load_dataset(known.hub, known.config, split=known.splits[split])
    except Exception as error:  # of many kinds, such as no network or a server's failure
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise OSError(
            f"{known.hub} could not be fetched ({message}); is there a network? Try again, {from_folder}"
        ) from error
    return (Row(place=f"{known.hub}, {split} {number}", columns=row) for number, row in enumerate(rows))


def read_folder(known: KnownData, split: str, folder: Path) -> Iterator[Row]:
    """The file whose name has the split's, or, of a folder with one file, the rows of that split."""
    if not folder.is_dir():
        raise ValueError(f"{folder} is no folder; name the one that holds the files of the data set")
    if known.config is not None and (folder / known.config).is_dir():  # as the Hub lays it out
        folder = folder / known.config
    files = sorted(file for file in folder.rglob("*") if file.name.endswith(SUFFIXES))
    split_name = known.splits[split]
    split_files = [file for file in files if split_name in file.stem.lower()]
    if split_files:
        for file in split_files:
            yield from read_rows(file)
    elif len(files) == 1 and (known.split_of is not None or len(known.splits) == 1):
        split_of = known.split_of
        yield from (row for row in read_rows(files[0]) if split_of is None or split_of(row.columns) == split)
    else:
        listing = ", ".join(file.name for file in files[:5]) or "no data files"
        raise NoSuchSplit(
            f"{folder} has no file of the split {split_name} (a name with {split_name!r} that ends in "
            f"{', '.join(SUFFIXES)}); it has {listing}"
        )
