"""The step `pass_rates`: how often a model solves each problem; a window of rates, and levels 1 (easy) to 5 (hard).

    [[step]]
    name = "pass_rates"
    records = "difficulty/difficulty.jsonl"      # of `foresail data grade-difficulty`, on the same ids
    most = 0.9                                   # MiMo: no problem that is solved more often

Or `key` names a column of the data: a rate from 0 to 1, or a list of rates, of which it takes the mean. Metadata:
pass_rate and level, by the percentiles of what stays. Reasons: too_easy, too_hard, unmeasured.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, ClassVar, Literal

from pydantic import Field

from foresail.curate.document import Document, Drop
from foresail.curate.rows.holds import Holds
from foresail.curate.step import Outcome
from foresail.data.problems.difficulty import find_levels
from foresail.recipe.tables.inputs import reach
from foresail.recipe.tables.levels import read_by_id
from foresail.recipe.tables.part import CheckedPart


class PassRates(CheckedPart):
    """Keeps problems whose pass rate is in a window, and writes levels."""

    takes: ClassVar[Holds] = ("problems",)

    records: str = Field("", description="file of pass rates by id, as grade-difficulty writes it")
    key: str = Field("", description="column of the data, or key of metadata, with a rate or a list of rates")
    least: float = Field(0.0, ge=0, le=1, description="problems that are solved less often are dropped")
    most: float = Field(1.0, ge=0, le=1, description="problems that are solved more often are dropped")
    unmeasured: Literal["keep", "drop"] = Field("keep", description="what becomes of problems without a rate")

    def mistakes(self) -> Iterator[str]:
        if bool(self.records) == bool(self.key):
            yield "set records, a file of pass rates, or key, a column of the data"
        if self.least > self.most:
            yield f"least {self.least:g} is above most {self.most:g}; nothing would stay"

    def files(self) -> tuple[str, ...]:
        return (self.records,) if self.records else ()

    def preflight(self) -> None:
        if self.records:
            read_by_id(Path(self.records), "pass_rate", to_rate)

    def collect(self, documents: Iterable[Document], features: Path) -> None:
        rates = read_by_id(Path(self.records), "pass_rate", to_rate) if self.records else {}
        with features.open("w", encoding="utf-8") as file:
            for document in documents:
                file.write(
                    json.dumps(rates.get(document.id) if self.records else rate_of(document, self.key)) + "\n"
                )

    def decide(self, features: Sequence[Path], decisions: Sequence[Path], scratch: Path) -> dict[str, Any]:
        pieces = [
            [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] for file in features
        ]
        staying = [
            rate if rate is not None and self.least <= rate <= self.most else None
            for piece in pieces
            for rate in piece
        ]
        levels = iter(find_levels(staying))
        for rates, file in zip(pieces, decisions, strict=True):
            file.write_text(
                "".join(json.dumps([rate, next(levels)]) + "\n" for rate in rates), encoding="utf-8"
            )
        every = [rate for piece in pieces for rate in piece]
        return {
            "problems": len(every),
            "measured": sum(rate is not None for rate in every),
            "in_window": sum(rate is not None for rate in staying),
        }

    def open(self, decisions: Path) -> Callable[[int, Document], Outcome]:
        lines = [json.loads(line) for line in decisions.read_text(encoding="utf-8").splitlines()]
        return lambda number, document: self.settle(document, *lines[number])

    def settle(self, document: Document, rate: float | None, level: int | None) -> Outcome:
        if rate is None:
            return document if self.unmeasured == "keep" else Drop("unmeasured", "no pass rate")
        if rate < self.least:
            return Drop("too_hard", f"solved in {rate:.1%}")
        if rate > self.most:
            return Drop("too_easy", f"solved in {rate:.1%}")
        return replace(document, metadata={**document.metadata, "pass_rate": round(rate, 4), "level": level})


def to_rate(value: Any) -> float | None:
    """to_rate([0.25, 0.75]) -> 0.5; None for null; ValueError for what is no rate."""
    if value is None or value == []:
        return None
    numbers = value if isinstance(value, list) else [value]
    if not all(isinstance(number, int | float) and 0 <= number <= 1 for number in numbers):
        raise ValueError(f"{str(value)[:60]} is no pass rate from 0 to 1")
    return float(fmean(numbers))


def rate_of(document: Document, key: str) -> float | None:
    value = document.metadata.get(key, reach(document.row or {}, key))
    try:
        return to_rate(value)
    except ValueError:
        return None
