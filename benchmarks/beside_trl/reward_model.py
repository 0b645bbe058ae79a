"""The part reward of `vs_trl.py`: seconds a step, peak memory and losses of training a reward model.

Both sides train the same classifier on the same tokens and margins in the same order, with scores kept about 0, as
many pairs in an update and about as many at once. Rounds alternate, each side in a process of its own; the first
step of every process does not count. In float32 on a CPU losses of equal steps must agree, and with them all
gradients before.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from beside_trl.pair_load import PairLoad
from beside_trl.pair_load import prepare as prepare_pairs
from beside_trl.pair_rounds import Plan, Sides, compare, recipe_keys, request_keys, run_rounds
from foresail.data.scored_pairs import end_with_answers
from foresail.model.hf import load_model
from foresail.recipe.reward_model import RewardModel
from foresail.records import TrainPair
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.learner import save_weights

CENTER = 0.01


def measure_reward(loads: list[PairLoad], plan: Plan) -> Iterator[dict[str, Any]]:
    figures: dict[str, Any] = {}
    for load in loads:
        figures[load.name] = measure_speed(load, plan)
        yield figures


def measure_speed(load: PairLoad, plan: Plan) -> dict[str, Any]:
    """What `compare` tells of both sides, and of their memory."""
    print(f"\nreward model, {load.describe()}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "classifier"
        pairs = prepare(load, Path(folder), plan.steps + 1)
        sides = Sides(
            recipe=lambda place: RewardModel(
                **recipe_keys(load, plan, place, checkpoint, pairs), center=CENTER
            ),
            our_script="ours_reward_model.py",
            request={
                **request_keys(load, plan, checkpoint),
                "center": CENTER,
                "pairs": [
                    {"chosen_ids": pair.chosen.ids, "rejected_ids": pair.rejected.ids, "margin": pair.margin}
                    for pair in pairs
                ],
            },
            peer_script=("peer_reward_model.py",),
        )
        figures = compare(run_rounds(sides, plan, Path(folder)))
    if "ratio" in figures:
        figures["memory_ratio"] = figures["ours"]["peak_gb"] / figures["theirs"]["peak_gb"]
        print(
            f"  ratio {figures['ratio']:.2f}, of CPU time {figures['cpu_ratio']:.2f}; memory "
            f"{figures['memory_ratio']:.2f} of TRL's; losses of equal steps differ by "
            f"{figures['loss_difference']:.1e} at the most",
            flush=True,
        )
    return figures


def prepare(load: PairLoad, folder: Path, steps: int) -> list[TrainPair]:
    """A classifier and pairs with margins for so many steps, in the order in which Foresail draws them."""
    pairs = [end_with_answers(pair) for pair in prepare_pairs(load, folder / "model", steps)]
    model = load_model(folder / "model", dtype=torch.float32, device="cpu", scores=True)
    save_weights(model, Tokenizer.load(folder / "model"), folder / "classifier")
    margins, file = random.Random(1), folder / "model" / "pairs.jsonl"
    by_name: dict[str, float] = {}
    rows = []
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        by_name[f"{file} line {number}"] = margin = round(margins.random(), 3)
        rows.append(json.dumps({**json.loads(line), "margin": margin}))
    (folder / "classifier" / "pairs.jsonl").write_text("".join(f"{row}\n" for row in rows))
    numbers = {
        pair.name: int("".join(filter(str.isdigit, pair.name.rpartition("jsonl")[2]))) for pair in pairs
    }
    of_row = [*by_name.values()]
    return [replace(pair, margin=of_row[numbers[pair.name] - 1]) for pair in pairs]
