"""The part dpo of `vs_trl.py`: losses of preference pairs, then seconds a step, peak memory and losses of runs.

TRL's setting for batches without padding does nothing in 1.16. What is equal on both sides: `pairs.py`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dpo_losses
from pairs import (
    PairLoad,
    Task,
    common_recipe,
    common_request,
    random_rows,
    run_sides,
    their_pairs,
    write_pairs,
)
from plan import Plan
from process import HERE

from foresail.recipe.stages.dpo import Dpo
from foresail.recipe.tables.preferences import PreferenceLoss, Reference

BETA = 0.1


@dataclass(frozen=True, kw_only=True)
class DpoPlan(Plan):
    """`kept`: the reference's log-probabilities are computed before, on both sides; else at every step, on both."""

    kept: bool = True


def measure_dpo(loads: list[PairLoad], plan: DpoPlan, *, losses: bool) -> Iterator[dict[str, Any]]:
    """Losses of one batch first, where they are asked for."""
    figures: dict[str, Any] = {}
    if losses:
        with tempfile.TemporaryDirectory() as folder, plan.turns.start():
            figures["losses"] = dpo_losses.measure_losses(Path(folder), plan.peer_python)
        yield figures
    for load in loads:
        figures[load.name] = measure_speed(load, plan)
        yield figures


def measure_speed(load: PairLoad, plan: DpoPlan) -> dict[str, Any]:
    print(
        f"\nDPO, {load.describe()}, reference {'kept' if plan.kept else 'at every step'}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.jsonl"
        with plan.turns.start():
            checkpoint = plan.models.language_model(load.shape, load.device, plan.precision(load.device))
            pairs = write_pairs(random_rows(load, plan.steps + 1), file, checkpoint)
        task = Task(load=load, plan=plan, checkpoint=checkpoint, file=file, pairs=pairs)
        recipe = Dpo(
            **common_recipe(task), loss=PreferenceLoss(beta=BETA), reference=Reference(kept=plan.kept)
        )
        request = common_request(task) | {
            "kept": plan.kept,
            "beta": BETA,
            "pairs": [dpo_losses.as_ids(pair) for pair in their_pairs(task)],
        }
        their_command = [plan.peer_python, str(HERE / "peer_dpo.py"), "steps"]
        figures = run_sides(f"DPO, {load.name}", task, recipe, request, their_command)
    tokens = [len(pair.chosen.ids) + len(pair.rejected.ids) for pair in pairs]
    return figures | {"kept": plan.kept, "tokens_per_pair": sum(tokens) / len(tokens)}
