"""The most important metrics, with short labels, for display, plots and summary."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ACCURACY = "rollout/accuracy"
REWARD = "rollout/reward"  # of all samples
LEARNED_FROM = "critic/rewards/mean"  # of the groups used for training
HELD_OUT_LOSS = "val/loss/"  # followed by the corpus
ROUNDING = 1e-9  # difference of two means of the same numbers


@dataclass(frozen=True, kw_only=True)
class KeyMetric:
    """A short label for the first of `names` that a record holds, and how to print it."""

    label: str
    names: tuple[str, ...]
    format: str

    def find(self, metrics: Mapping[str, Any]) -> float | None:
        """The value, or None if it is missing or no number (NaN is logged as null)."""
        values = (as_number(metrics.get(name)) for name in self.names)
        return next((value for value in values if value is not None), None)

    def show(self, value: float | None) -> str:
        return "nan" if value is None else format(value, self.format)


KEY_METRICS = (
    KeyMetric(label="loss", names=("train/loss",), format=".3f"),
    KeyMetric(
        label="divergence",
        names=("distill/reverse", "distill/forward", "distill/js", "distill/sampled"),
        format=".3f",
    ),
    KeyMetric(label="reward", names=(REWARD, "critic/rewards/mean", "critic/score/mean"), format=".2f"),
    KeyMetric(label="reward, learned from", names=(LEARNED_FROM,), format=".2f"),
    KeyMetric(label="accuracy", names=(ACCURACY,), format=".2f"),
    KeyMetric(label="pairs right", names=("rewards/accuracies",), format=".2f"),
    KeyMetric(label="length", names=("response_length/mean",), format=".1f"),
    KeyMetric(label="entropy", names=("actor/entropy",), format=".2f"),
    KeyMetric(label="lr", names=("train/lr",), format=".1e"),
    KeyMetric(label="tokens/s", names=("perf/throughput",), format=".0f"),
)
# shown in the live view and by `foresail show`, but not in tables of runs
DETAIL_METRICS = (
    KeyMetric(label="length, right", names=("response_length/correct/mean",), format=".1f"),
    KeyMetric(label="length, wrong", names=("response_length/wrong/mean",), format=".1f"),
    KeyMetric(label="cut at the limit", names=("response_length/clip_ratio",), format=".1%"),
    KeyMetric(label="no answer found", names=("verdict/unparsable",), format=".1%"),
    KeyMetric(label="useful groups", names=("groups/useful",), format=".0%"),
    KeyMetric(label="clipped above", names=("actor/pg_clipfrac_above",), format=".2%"),
    KeyMetric(label="clipped below", names=("actor/pg_clipfrac_below",), format=".2%"),
    KeyMetric(label="gradient norm", names=("actor/grad_norm",), format=".3g"),
    KeyMetric(label="engine - trainer", names=("rollout/logprob_abs_diff",), format=".1e"),
    KeyMetric(label="expert load, max/mean", names=("router/load_max_over_mean",), format=".2f"),
    KeyMetric(label="dead experts", names=("router/dead_experts",), format=".0f"),
)


MAX_TERMS = 4  # terms of a reward that are shown


def term_names(metrics: Iterable[str]) -> list[str]:
    """Metrics of a reward's own terms: term_names(["reward/brevity/mean", "lr"]) -> ["reward/brevity/mean"]."""
    return [name for name in metrics if name.startswith("reward/") and name.endswith("/mean")][:MAX_TERMS]


def term_label(name: str) -> str:
    """term_label("reward/brevity/mean") -> "brevity"; term_label("val/loss/web") -> "web"."""
    return name.removeprefix("reward/").removeprefix(HELD_OUT_LOSS).removesuffix("/mean")


def accuracy_tells(metrics: Mapping[str, Any]) -> bool:
    """Whether the accuracy is meaningful: not if it is 0 and a user's function gives scores."""
    accuracy, score = as_number(metrics.get(ACCURACY)), as_number(metrics.get("critic/score/mean"))
    return accuracy is not None and (accuracy > 0 or not score)


def is_shown(metric: KeyMetric, metrics: Mapping[str, Any]) -> bool:
    """Whether the metric tells more than the record's other shown metrics."""
    if ACCURACY in metric.names:
        return accuracy_tells(metrics)
    if metric.names == (LEARNED_FROM,):
        reward, learned_from = as_number(metrics.get(REWARD)), as_number(metrics.get(LEARNED_FROM))
        return reward is not None and learned_from is not None and abs(reward - learned_from) > ROUNDING
    return any(name in metrics for name in metric.names)


def groups_used(metrics: Mapping[str, Any]) -> str | None:
    """groups_used({"rollout/groups_launched": 21, "rollout/groups_used": 8}) -> "8 of 21"; None if all were."""
    used, launched = (metrics.get(f"rollout/groups_{name}") for name in ("used", "launched"))
    return None if used is None or launched is None or used >= launched else f"{used:g} of {launched:g}"


def has_own_scores(metrics: Mapping[str, Any]) -> bool:
    """Whether scores are more than right or wrong, so that the reward differs from the accuracy."""
    accuracy, score = as_number(metrics.get(ACCURACY)), as_number(metrics.get("critic/score/mean"))
    return accuracy is not None and score is not None and abs(score - accuracy) > ROUNDING


def is_held_out(name: str) -> bool:
    """is_held_out("val-core/gsm8k/acc/mean@1") -> True: accuracies on held-out problems."""
    return name.startswith("val-core/") and "/acc/" in name


def held_out_label(name: str) -> str:
    """held_out_label("val-core/gsm8k/acc/mean@1") -> "gsm8k mean@1"."""
    kind = "/reward/" if is_held_out_reward(name) else "/acc/"
    source, _, measure = name.removeprefix("val-core/").partition(kind)
    return f"{source} {measure}"


def is_held_out_reward(name: str) -> bool:
    return name.startswith("val-core/") and "/reward/" in name


def held_out(metrics: Mapping[str, Any]) -> dict[str, float]:
    """The held-out accuracies of a record, by name."""
    values = {name: as_number(value) for name, value in metrics.items() if is_held_out(name)}
    return {name: value for name, value in values.items() if value is not None}


def as_number(value: Any) -> float | None:
    """as_number(1) -> 1.0; None for what is missing, NaN, infinite or text."""
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None
