"""Rounds of training on pairs, for `dpo.py` and `reward_model.py`: each side in a process of its own, in turn."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from beside_trl.load import NEVER
from beside_trl.pair_load import PairLoad
from beside_trl.process import HERE, steps_after_first
from beside_trl.seconds import median_seconds
from foresail.recipe import parts
from foresail.recipe.dump import to_toml
from foresail.recipe.sources import Preferences
from foresail.recipe.stage import Stage
from foresail.records import TrainPair

RATE = 1e-5
ROOM = 1.1  # of a micro-batch, over its share of the tokens
Steps = list[dict[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often and how long: `steps` of each process beyond the first. `kept`: the reference's log-probabilities
    are computed before, on both sides; else at every step, on both.
    """

    peer_python: str
    rounds: int
    steps: int
    seconds: float
    kept: bool = True
    weights: str = "float32"
    recompute: bool = False


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What each side is told, and the script that does it."""

    recipe: Callable[[Path], Stage]  # of a run in that folder
    our_script: str
    request: dict[str, Any]
    peer_script: tuple[str, ...]  # and its words before the folder


def recipe_keys(
    load: PairLoad, plan: Plan, folder: Path, checkpoint: Path, pairs: list[TrainPair]
) -> dict[str, Any]:
    """Keys of our recipe, whatever the loss is. AdamW as TRL's default has it."""
    longest = max(len(pair.ids) for pair in pairs)
    packed = [len(pair.chosen.ids) + sum(pair.rejected.loss_mask) for pair in pairs]
    at_once = ROOM * load.pairs / load.micro_batches * sum(packed) / len(packed)
    return {
        "run": parts.Run(name="ours", root=str(folder), device=load.device),
        "model": parts.Model(path=str(checkpoint), dtype=load.dtype),
        "data": (Preferences(source=str(checkpoint / "pairs.jsonl")),),
        "steps": plan.steps + 1,
        "batch_size": load.pairs,
        "max_length": longest,
        "micro_batch_tokens": max(2 * longest, round(at_once)),
        "recompute": plan.recompute,
        "optimizer": parts.Optimizer(lr=RATE, beta2=0.999),
        "checkpoints": parts.Checkpoints(every=NEVER),
    }


def request_keys(load: PairLoad, plan: Plan, checkpoint: Path) -> dict[str, Any]:
    """The same for TRL."""
    return {
        "checkpoint": str(checkpoint),
        "device": load.device,
        "dtype": plan.weights,
        "steps": plan.steps + 1,
        "pairs_per_step": load.pairs,
        "micro_batches": load.micro_batches,
        "recompute": plan.recompute,
        "learning_rate": RATE,
    }


def run_rounds(sides: Sides, plan: Plan, folder: Path) -> dict[str, Steps]:
    """The counted steps of each side."""
    seen: dict[str, Steps] = {"theirs": [], "ours": []}
    for number in range(plan.rounds):
        for side in seen:
            counted = run_side(side, sides, plan, folder / f"{side}{number}")
            seen[side] += counted
            print(f"  round {number + 1}  {describe(side, summarise(counted))}", flush=True)
    return seen


def run_side(side: str, sides: Sides, plan: Plan, folder: Path) -> Steps:
    """The steps after the first, as far as they came within their time."""
    folder.mkdir()
    if side == "ours":
        (folder / "recipe.toml").write_text(to_toml(sides.recipe(folder)))
        command = [sys.executable, str(HERE / sides.our_script), str(folder)]
    else:
        (folder / "request.json").write_text(json.dumps(sides.request))
        script, *words = sides.peer_script
        command = [plan.peer_python, str(HERE / script), *words, str(folder)]
    return steps_after_first(command, folder / f"{side}.log", plan.seconds)


def compare(seen: dict[str, Steps]) -> dict[str, Any]:
    """Medians by side over all counted steps; of two that came to some, ratios and how far losses are apart."""
    figures: dict[str, Any] = {side: summarise(steps) for side, steps in seen.items()}
    if all(figures.values()):
        for clock, ratio in (("step", "ratio"), ("cpu", "cpu_ratio")):
            figures[ratio] = figures["theirs"][clock] / figures["ours"][clock]
        both = zip(seen["ours"], seen["theirs"], strict=False)
        figures["loss_difference"] = max(abs(ours["loss"] - theirs["loss"]) for ours, theirs in both)
    return figures


def summarise(steps: list[dict[str, Any]]) -> dict[str, Any]:
    if not steps:
        return {}
    return median_seconds(steps, ("step", "cpu")) | {
        "steps": len(steps),
        "slowest": max(step["seconds"]["step"] for step in steps),
        "fastest": min(step["seconds"]["step"] for step in steps),
        "peak_gb": max(step["peak_gb"] for step in steps),
        "loss": median(step["loss"] for step in steps),
    }


def describe(side: str, found: dict[str, Any]) -> str:
    name = {"theirs": "TRL", "ours": "Foresail"}[side]
    if not found:
        return f"{name:<9} no step came to its end"
    return (
        f"{name:<9}{found['step']:>8.3f} s a step, {found['cpu']:.3f} s of CPU, peak {found['peak_gb']:.2f} GB, "
        f"loss {found['loss']:.4f}"
    )
