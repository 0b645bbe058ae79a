"""The part dpo of `vs_trl.py`: losses of preference pairs, then seconds a step, peak memory and losses of runs.

Both sides train the same checkpoint on the same tokens in the same order, with as many pairs in an update and about
as many at once. Rounds alternate, each side in a process of its own; the first step of each does not count.
TRL pads: its setting for batches without padding does nothing in 1.16, and it has no shared prompts.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from beside_trl import dpo_losses
from beside_trl.pair_load import PairLoad, prepare
from beside_trl.pair_rounds import Plan, Sides, compare, recipe_keys, request_keys, run_rounds
from foresail.recipe.dpo import Dpo
from foresail.recipe.preferences import PreferenceLoss, Reference

BETA = 0.1


def measure_dpo(loads: list[PairLoad], plan: Plan) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        figures: dict[str, Any] = {"losses": dpo_losses.measure_losses(Path(folder), plan.peer_python)}
    yield figures
    for load in loads:
        figures[load.name] = measure_speed(load, plan)
        yield figures


def measure_speed(load: PairLoad, plan: Plan) -> dict[str, Any]:
    """What `compare` tells of both sides, and the settings."""
    print(
        f"\nDPO, {load.describe()}, reference {'kept' if plan.kept else 'at every step'}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "model"
        pairs = prepare(load, checkpoint, plan.steps + 1)
        sides = Sides(
            recipe=lambda place: Dpo(
                **recipe_keys(load, plan, place, checkpoint, pairs),
                loss=PreferenceLoss(beta=BETA),
                reference=Reference(kept=plan.kept),
            ),
            our_script="ours_dpo.py",
            request={
                **request_keys(load, plan, checkpoint),
                "kept": plan.kept,
                "beta": BETA,
                "pairs": [dpo_losses.as_ids(pair) for pair in pairs],
            },
            peer_script=("peer_dpo.py", "steps"),
        )
        figures = compare(run_rounds(sides, plan, Path(folder)))
    if "ratio" in figures:
        print(
            f"  ratio {figures['ratio']:.2f}, of CPU time {figures['cpu_ratio']:.2f}; losses of equal steps differ "
            f"by {figures['loss_difference']:.1e} at the most",
            flush=True,
        )
    tokens = [len(pair.chosen.ids) + len(pair.rejected.ids) for pair in pairs]
    return figures | {
        "kept": plan.kept,
        "weights": plan.weights,
        "tokens_per_pair": sum(tokens) / len(tokens),
    }
