"""The part reward of `vs_trl.py`: seconds a step, peak memory and losses of training a reward model.

Pairs have margins, and scores are kept about 0. In float32 losses of equal steps must agree, and with them all
gradients before. What is equal on both sides: `pairs.py`.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pairs import (
    PairLoad,
    Rows,
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

from foresail.data.preferences.scored_pairs import end_with_answers
from foresail.recipe.stages.reward_model import RewardModel

CENTER = 0.01


def measure_reward(loads: list[PairLoad], plan: Plan) -> Iterator[dict[str, Any]]:
    figures: dict[str, Any] = {}
    for load in loads:
        figures[load.name] = measure_speed(load, plan)
        yield figures


def measure_speed(load: PairLoad, plan: Plan) -> dict[str, Any]:
    print(f"\nreward model, {load.describe()}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.jsonl"
        with plan.turns.start():
            checkpoint = plan.models.classifier(load.shape, load.device, plan.precision(load.device))
            rows = with_margins(random_rows(load, plan.steps + 1))
            pairs = [end_with_answers(pair) for pair in write_pairs(rows, file, checkpoint)]
        task = Task(load=load, plan=plan, checkpoint=checkpoint, file=file, pairs=pairs)
        recipe = RewardModel(**common_recipe(task), center=CENTER)
        request = common_request(task) | {
            "center": CENTER,
            "pairs": [
                {"chosen_ids": pair.chosen.ids, "rejected_ids": pair.rejected.ids, "margin": pair.margin}
                for pair in their_pairs(task)
            ],
        }
        their_command = [plan.peer_python, str(HERE / "peer_reward_model.py")]
        return run_sides(f"reward model, {load.name}", task, recipe, request, their_command)


def with_margins(rows: Rows) -> Rows:
    draw = random.Random(1)
    return [row | {"margin": round(draw.random(), 3)} for row in rows]
