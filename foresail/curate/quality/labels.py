"""Labelled texts, and the heads that they call for.

    {"text": "…", "labels": {"fluency": 4, "education": 2.5, "domain": "maths"}}

Whole numbers are levels (an ordinal head), other numbers a score, words are classes. Labels that a row lacks are
not learned from. Rows of `foresail data judge` have this form.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from foresail.data.files import excerpt
from foresail.data.rows import Row, read_rows

MOST_LEVELS, MOST_CLASSES, MOST_NUMBERS = 11, 256, 1000
TEXT_KEYS = ("text", "content")
Kind = Literal["levels", "score", "classes"]
Label = float | str


@dataclass(frozen=True, kw_only=True)
class Head:
    """What is predicted under one name. `names` are of classes; levels and scores lie between `low` and `high`."""

    name: str
    kind: Kind
    low: float = 0.0
    high: float = 1.0
    names: tuple[str, ...] = ()

    @property
    def columns(self) -> int:
        """Of the weights."""
        return len(self.names) if self.kind == "classes" else 1

    @property
    def biases(self) -> int:
        """Levels 0 to 5 have five thresholds."""
        return int(self.high - self.low) if self.kind == "levels" else self.columns

    def target(self, label: Label | None) -> float:
        """As training has it: the level from 0, the score from 0 to 1, the number of the class; NaN: no label."""
        if label is None:
            return math.nan
        if self.kind == "classes":
            return float(self.names.index(str(label)))
        distance = float(label) - self.low
        return distance if self.kind == "levels" else distance / (self.high - self.low)


@dataclass(frozen=True, kw_only=True)
class LabelledText:
    text: str
    labels: Mapping[str, Label]


def read_labels(file: Path, columns: Sequence[str] = ()) -> Iterator[LabelledText]:
    """Rows in their order. `columns` are labels that stand beside the text; default: the column `labels`."""
    for row in read_rows(file):
        text = next((row.columns[key] for key in TEXT_KEYS if isinstance(row.columns.get(key), str)), None)
        if text is None:
            raise ValueError(f"{row.place}: no column text or content; add the text that is labelled")
        yield LabelledText(text=text, labels=labels_of(row, columns))


def labels_of(row: Row, columns: Sequence[str]) -> dict[str, Label]:
    if columns:
        table: Any = {name: row.columns.get(name) for name in columns}
    else:
        table = row.columns.get("labels")
    if not isinstance(table, Mapping):
        raise ValueError(
            f'{row.place}: no labels; write "labels": {{"fluency": 4, …}}, or name columns with --label'
        )
    return {name: checked(value, name, row.place) for name, value in table.items() if value is not None}


def checked(value: Any, name: str, place: str) -> Label:
    if isinstance(value, str) and value.strip():
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    if isinstance(value, bool):
        return float(value)
    raise ValueError(f"{place}: label {name} is {excerpt(value)}; write a number or a word")


def some_fraction(numbers: set[float]) -> list[float]:
    """One of them that is not whole, if there is any."""
    return sorted(number for number in numbers if number != int(number))[:1]


class HeadFinder:
    """Sees all labels of a name, then says which head they need."""

    def __init__(self) -> None:
        self._numbers: dict[str, set[float]] = {}
        self._words: dict[str, Counter[str]] = {}

    def add(self, labels: Mapping[str, Label]) -> None:
        for name, label in labels.items():
            if isinstance(label, str):
                self._words.setdefault(name, Counter())[label] += 1
            else:
                numbers = self._numbers.setdefault(name, set())
                numbers.add(label)
                if len(numbers) > MOST_NUMBERS:  # a score: its bounds are enough, and one that is not whole
                    self._numbers[name] = {min(numbers), max(numbers), *some_fraction(numbers)}

    def heads(self) -> tuple[Head, ...]:
        if both := sorted(self._words.keys() & self._numbers.keys()):
            raise ValueError(
                f"label {both[0]} is a number in some rows and a word in others; use one of them"
            )
        names = sorted({*self._words, *self._numbers})
        if not names:
            raise ValueError("no row has a label; there is nothing to learn")
        return tuple(self._head(name) for name in names)

    def _head(self, name: str) -> Head:
        if name in self._words:
            words = tuple(sorted(self._words[name]))
            if not 2 <= len(words) <= MOST_CLASSES:
                raise ValueError(
                    f"label {name} has {len(words)} classes; between 2 and {MOST_CLASSES} are needed"
                )
            return Head(name=name, kind="classes", names=words)
        numbers = self._numbers[name]
        low, high = min(numbers), max(numbers)
        if low == high:
            raise ValueError(f"label {name} is {low:g} in every row; there is nothing to learn from it")
        whole = all(number == int(number) for number in numbers) and high - low < MOST_LEVELS
        return Head(name=name, kind="levels" if whole else "score", low=low, high=high)
