"""The cost model of an engine's step: a roofline of four numbers, fitted to measurements, for any model and card.

    step = max(fixed, per_entry × entries) + per_cached_token × cached tokens + verify, if drafts are checked

An entry is a token that goes through the model; a row without drafts has one, with a draft of three it has four.
`fixed` is reading the weights once, `per_entry` the arithmetic, `per_cached_token` reading keys and values.

For another model or card, reading scales with bytes over bandwidth, arithmetic with parameters over FLOPS; both are
split evenly over an instance's cards. Assumptions: communication between cards costs nothing, a mixture of experts
reads all experts in every step, and all cards reach the measured one's share of their data sheet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np


class MeasuredStep(NamedTuple):
    """A step of `batch` rows, each with a draft and a context of these lengths.

    The table is the file that `benchmarks/engine/engine_gpu.py --drafts` writes:
    {"columns": ["batch", "draft_length", "context", "milliseconds"], "7B": [[256, 0, 521, 8.99], …], …}
    """

    batch: float
    draft_length: float
    context: float
    milliseconds: float


def read_step_table(path: Path, shape: str) -> list[MeasuredStep]:
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(
            f"the table of step costs {path} is not there; run this in the folder of the repository, "
            "or give its path"
        ) from None
    if table.get("columns") != list(MeasuredStep._fields) or shape not in table:
        known = ", ".join(
            name for name, rows in table.items() if name != "columns" and isinstance(rows, list)
        )
        raise ValueError(
            f'{path} has no table of {", ".join(MeasuredStep._fields)} for "{shape}", only for '
            f"{known or 'nothing'}; choose another, or measure it with benchmarks/engine/engine_gpu.py --drafts"
        )
    return [MeasuredStep(*row) for row in table[shape]]


@dataclass(frozen=True, kw_only=True)
class Card:
    """A GPU's data sheet."""

    bandwidth: float  # bytes per second
    flops: float  # dense bfloat16, per second
    memory: float  # bytes


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """A model's bytes to read and parameters to compute with."""

    weight_bytes: float  # read by every step
    active_parameters: float  # used for one token
    kv_bytes: float  # of one token, in all layers


CARDS = {
    "H200": Card(bandwidth=4.8e12, flops=989e12, memory=141e9),
    "H800": Card(bandwidth=3.35e12, flops=989e12, memory=80e9),
    "H20": Card(bandwidth=4.0e12, flops=148e12, memory=96e9),
}
# The models of the measured table; the embedding is looked up, not read.
MEASURED = {
    "7B": ModelSize(weight_bytes=14.1e9, active_parameters=7.07e9, kv_bytes=57_344),
    "1.5B": ModelSize(weight_bytes=3.09e9, active_parameters=1.54e9, kv_bytes=28_672),
}
MEASURED_ON = CARDS["H200"]


@dataclass(frozen=True, kw_only=True)
class StepCost:
    """Seconds. StepCost(fixed=4e-3, per_entry=2e-5, …).step(entries=256, cached=0) -> 0.00512."""

    fixed: float
    per_entry: float
    per_cached_token: float
    verify: float = 0.0

    def base(self, entries: float, *, drafting: bool = False) -> float:
        """Seconds of a step without reading the cache."""
        return max(self.fixed, self.per_entry * entries) + self.verify * drafting

    def step(self, *, entries: float, cached: float, drafting: bool = False) -> float:
        return self.base(entries, drafting=drafting) + self.per_cached_token * cached

    @property
    def per_prefilled_token(self) -> float:
        """Seconds of prefill per token, limited by arithmetic."""
        return self.per_entry


@dataclass(frozen=True, kw_only=True)
class FittedCost:
    """A cost model, and its relative errors on the rows it was fitted to."""

    cost: StepCost
    mean_error: float
    worst_error: float


def fit(rows: Sequence[MeasuredStep]) -> FittedCost:
    """Least squares on relative errors, so that steps of 5 and of 100 milliseconds have equal weight.

    Each row's side of the roofline depends on the fit, so the fit is repeated until it converges.
    """
    batch, drafts, context, milliseconds = np.array(rows, dtype=float).T
    seconds, entries, cached, drafting = milliseconds / 1e3, batch * (drafts + 1), batch * context, drafts > 0
    reading = entries <= np.median(entries)
    for _ in range(100):
        columns = np.stack([reading, np.where(reading, 0, entries), cached, drafting], axis=1)
        solution = np.linalg.lstsq(columns / seconds[:, None], np.ones(len(rows)), rcond=None)[0]
        before, reading = reading, solution[0] > solution[1] * entries
        if np.array_equal(before, reading):
            break
    cost = StepCost(
        **dict(zip(("fixed", "per_entry", "per_cached_token", "verify"), map(float, solution), strict=True))
    )
    predicted = np.maximum(cost.fixed, cost.per_entry * entries) + cost.per_cached_token * cached
    errors = np.abs((predicted + cost.verify * drafting) / seconds - 1)
    return FittedCost(cost=cost, mean_error=float(errors.mean()), worst_error=float(errors.max()))


def carry_over(cost: StepCost, measured: ModelSize, model: ModelSize, card: Card, num_cards: int) -> StepCost:
    """The cost of another model on other cards, by bytes, parameters and data sheets."""
    reading = MEASURED_ON.bandwidth / card.bandwidth / num_cards
    computing = MEASURED_ON.flops / card.flops / num_cards
    return StepCost(
        fixed=cost.fixed * reading * model.weight_bytes / measured.weight_bytes,
        per_entry=cost.per_entry * computing * model.active_parameters / measured.active_parameters,
        per_cached_token=cost.per_cached_token * reading * model.kv_bytes / measured.kv_bytes,
        verify=cost.verify,  # launching kernels and comparing is the same work
    )
