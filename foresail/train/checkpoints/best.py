"""The best step so far by one logged metric, and how many measurements have passed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Literal

from foresail.recipe.tables.parts import HELD_OUT_MEAN
from foresail.runlog.key_metrics import as_number, is_held_out, is_held_out_reward


@dataclass(frozen=True, kw_only=True)
class Best:
    """`waiting` counts the measurements after it, none of which was better."""

    value: float
    step: int
    waiting: int = 0


def find_metric(metric: str, names: Iterable[str]) -> str | None:
    """find_metric("acc/mean@1", ["val-core/gsm8k/acc/mean@1"]) -> the whole name; several are an error."""
    matches = [name for name in names if name == metric or name.endswith(f"/{metric}")]
    if metric in matches:
        return metric
    if len(matches) > 1:
        raise ValueError(
            f'checkpoints.best = "{metric}" fits {", ".join(sorted(matches)[:4])}; write out the one you mean'
        )
    return matches[0] if matches else None


def measure(metric: str | None, metrics: Mapping[str, Any]) -> float | None:
    """The metric's value in a record; None where it was not measured, or is no number."""
    if metric == HELD_OUT_MEAN:
        values = [value for value in map(as_number, held_out_figures(metrics)) if value is not None]
        return fmean(values) if values else None
    name = find_metric(metric, metrics) if metric is not None else None
    return None if name is None else as_number(metrics[name])


def held_out_figures(metrics: Mapping[str, Any]) -> list[Any]:
    """The accuracy of every held-out set; their rewards, where the grader gives no right or wrong."""
    accuracies = [value for name, value in metrics.items() if is_held_out(name)]
    return accuracies or [value for name, value in metrics.items() if is_held_out_reward(name)]


def judge(best: Best | None, value: float, step: int, best_is: Literal["max", "min"]) -> Best:
    """A tie is no improvement: of equal steps the first is the best."""
    if best is None or (value > best.value if best_is == "max" else value < best.value):
        return Best(value=value, step=step)
    return replace(best, waiting=best.waiting + 1)
