"""Verdicts from the return values of reward functions, in the forms of verl, TRL, OpenRLHF and AReaL.

to_verdict({"score": 0.5, "acc": True, "steps": 3}, …)  -> correct, 0.5, with extra {"steps": 3}
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean
from typing import Any

from foresail.records import Status, Verdict

LONGEST_DETAIL = 200  # characters of a function's text besides the score
ROUNDING = 1e-9  # 0.7 + 0.2 + 0.1 is meant to be 1
REWARDS, RIGHTNESS = ("score", "rewards"), ("acc", "scores")


class Logged:
    """The values that a function logs with TRL's `log_metric` and `log_extra` for `count` responses."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.metrics: dict[str, list[float]] = {}
        self.columns: dict[str, list[Any]] = {}

    def log_metric(self, name: str, value: Any) -> None:
        number = as_number(plain(value))
        if number is None:
            raise ValueError(f"log_metric({name!r}) got {value!r}, not a finite number")
        self.metrics.setdefault(str(name), []).append(number)

    def log_extra(self, column: str, values: Any) -> None:
        entries = [*plain(values)]
        if len(entries) != self.count:
            raise ValueError(f"log_extra({column!r}) got {len(entries)} values for {self.count} responses")
        self.columns[str(column)] = entries

    def add_to(self, verdict: Verdict, number: int) -> Verdict:
        """A metric holds for every response of the call, a column's entry for its own."""
        if not self.metrics and not self.columns:
            return verdict
        means = {name: fmean(values) for name, values in self.metrics.items()}
        entries = {name: loggable(values[number]) for name, values in self.columns.items()}
        return replace(verdict, metrics={**verdict.metrics, **means}, extra={**verdict.extra, **entries})


def split_batch(value: Any, count: int) -> list[Any]:
    """One value for each response: split_batch({"rewards": [1, 0]}, 2) -> [{"rewards": 1}, {"rewards": 0}]."""
    value = plain(value)
    if count == 1:
        return [value]
    if isinstance(value, dict):
        columns = {key: split_entry(key, entry, count) for key, entry in value.items()}
        return [{key: entries[number] for key, entries in columns.items()} for number in range(count)]
    return split_entry("", value, count)


def split_entry(key: str, value: Any, count: int) -> list[Any]:
    if isinstance(value, dict):
        return split_batch(value, count)
    if isinstance(value, list | tuple):
        if len(value) != count:
            raise ValueError(
                f"it returned {len(value)} values{f' of {key}' * bool(key)} for {count} responses"
            )
        return [*value]
    if key in ("", *REWARDS, *RIGHTNESS):
        raise ValueError(
            f"it returned {str(value)[:60]!r} for {count} responses; it must be a list of {count}"
        )
    return [value] * count  # a figure of the whole batch


def to_verdict(value: Any, *, name: str, threshold: float | None) -> Verdict:
    """The verdict of one return value; verl's `acc` or OpenRLHF's `scores`, if there, says whether it is right."""
    value = plain(value)
    returned = value if isinstance(value, dict) else {"score": value}
    reward = to_number(returned, *REWARDS)
    if reward is None:
        detail = f"{name} gave None: it does not apply to this problem"
        return Verdict(status="ungradable", score=0.0, detail=detail)
    if len(returned) == 1:
        return Verdict(status=status_of(reward, threshold), score=reward, detail=f"{name} gave {reward:g}")
    rightness = to_number(returned, *RIGHTNESS) if returned.keys() & {*RIGHTNESS} else None
    status = status_of(reward, threshold) if rightness is None else status_of(rightness, 1.0)
    rest = {key: returned[key] for key in returned if key not in REWARDS}
    detail = f"{name} gave {reward:g}" + f", {rest}"[:LONGEST_DETAIL]
    extra = {key: loggable(entry) for key, entry in flat(rest).items() if key not in RIGHTNESS}
    numbers = {key: as_number(entry) for key, entry in extra.items()}
    return Verdict(
        status=status,
        score=reward,
        detail=detail,
        extra=extra,
        metrics={f"{key}/mean": number for key, number in numbers.items() if number is not None},
    )


def status_of(score: float, threshold: float | None) -> Status:
    """status_of(0.4, None) -> "wrong", status_of(3, None) -> "scored": a count is neither right nor wrong.

    Without a threshold a score from -1 to 1 is right if it is 1, and any other score says nothing of that.
    """
    if threshold is None and abs(score) > 1 + ROUNDING:
        return "scored"
    return "correct" if score >= (1.0 if threshold is None else threshold) - ROUNDING else "wrong"


def to_number(result: Mapping[str, Any], *keys: str) -> float | None:
    """The first of the keys that is there: to_number({"rewards": [0.5]}, "score", "rewards") -> 0.5."""
    key = next((key for key in keys if key in result), None)
    if key is None:
        raise ValueError(
            f"the returned dict has no {' or '.join(keys)}; it has {', '.join(map(str, result))}"
        )
    value = result[key]
    while isinstance(value, list | tuple):
        if len(value) != 1:
            raise ValueError(f"it returned {len(value)} values for one response")
        value = plain(value[0])
    if value is None:
        return None
    if not isinstance(value, int | float):
        raise ValueError(f"it returned {str(value)[:60]!r} of type {type(value).__name__}, not a number")
    if not math.isfinite(value):
        raise ValueError(f"it returned {value}, not a finite number")
    return float(value)


def flat(result: Mapping[Any, Any]) -> dict[str, Any]:
    """OpenRLHF's figures stand a level deeper: flat({"extra_logs": {"length": [3]}}) -> {"length": [3]}."""
    logs = result.get("extra_logs")
    inner = logs if isinstance(logs, dict) else {}
    return {str(key): entry for key, entry in {**result, **inner}.items() if key != "extra_logs" or not inner}


def loggable(value: Any) -> float | str | None:
    """A value for JSON: numbers and text unchanged, else the beginning of its `str`."""
    value = plain(value)
    while isinstance(value, list | tuple) and len(value) == 1:
        value = value[0]
    if value is None or isinstance(value, str | int | float):
        return value
    return str(value)[:LONGEST_DETAIL]


def as_number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def plain(value: Any) -> Any:
    """Tensors and arrays as numbers and lists, without importing their libraries; dicts entry by entry."""
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    return value.tolist() if hasattr(value, "tolist") else value
