"""The few metrics people look at first, under short names; display, plots and summary choose from here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Headline:
    """A short label for the first of `names` that a record holds, and how to print it."""

    label: str
    names: tuple[str, ...]
    format: str

    def find(self, metrics: Mapping[str, Any]) -> float | None:
        """The value, or None where the record lacks it or it was no number (NaN is logged as null)."""
        for name in self.names:
            if (value := as_number(metrics.get(name))) is not None:
                return value
        return None

    def show(self, value: float | None) -> str:
        return "nan" if value is None else format(value, self.format)


HEADLINES = (
    Headline(label="loss", names=("train/loss",), format=".3f"),
    Headline(label="reward", names=("critic/rewards/mean", "critic/score/mean"), format=".2f"),
    Headline(label="accuracy", names=("rollout/accuracy",), format=".2f"),
    Headline(label="length", names=("response_length/mean",), format=".1f"),
    Headline(label="entropy", names=("actor/entropy",), format=".2f"),
    Headline(label="lr", names=("train/lr",), format=".1e"),
    Headline(label="tokens/s", names=("perf/throughput",), format=".0f"),
)
# for whoever looks closer: the live view and `foresail show`
DETAILS = (
    Headline(label="length, right", names=("response_length/correct/mean",), format=".1f"),
    Headline(label="length, wrong", names=("response_length/wrong/mean",), format=".1f"),
    Headline(label="cut at the limit", names=("response_length/clip_ratio",), format=".1%"),
    Headline(label="no answer found", names=("verdict/unparsable",), format=".1%"),
    Headline(label="useful groups", names=("groups/useful",), format=".0%"),
    Headline(label="clipped above", names=("actor/pg_clipfrac_above",), format=".2%"),
    Headline(label="clipped below", names=("actor/pg_clipfrac_below",), format=".2%"),
    Headline(label="gradient norm", names=("actor/grad_norm",), format=".3g"),
    Headline(label="engine - trainer", names=("rollout/logprob_abs_diff",), format=".1e"),
)


def is_held_out(name: str) -> bool:
    """is_held_out("val-core/gsm8k/acc/mean@1") -> True: accuracies on problems kept from training."""
    return name.startswith("val-core/") and "/acc/" in name


def held_out_label(name: str) -> str:
    """held_out_label("val-core/gsm8k/acc/mean@1") -> "gsm8k mean@1"."""
    source, _, measure = name.removeprefix("val-core/").partition("/acc/")
    return f"{source} {measure}"


def held_out(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The held-out accuracies of a record, by name; most records have none."""
    values = {name: as_number(value) for name, value in metrics.items() if is_held_out(name)}
    return {name: value for name, value in values.items() if value is not None}


def as_number(value: Any) -> float | None:
    """as_number(1) -> 1.0; None for what is missing, NaN, infinite or text."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
