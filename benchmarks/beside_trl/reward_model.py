"""The part reward of `vs_trl.py`: seconds a step, peak memory and losses of training a reward model.

Both sides train the same classifier on the same tokens and margins in the same order, with scores kept about 0, as
many pairs in an update and about as many at once. Rounds alternate, each side in a process of its own; the first
step of every process does not count. In float32 on a CPU losses of equal steps must agree, and with them all
gradients before.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from beside_trl.dpo import LOADS, RATE, ROOM, PairLoad, Plan, describe, smaller, summarise
from beside_trl.dpo import prepare as prepare_pairs
from beside_trl.load import NEVER
from beside_trl.process import HERE, steps_after_first
from foresail.data.scored_pairs import end_with_answers
from foresail.model.hf import load_model
from foresail.recipe import parts
from foresail.recipe.dump import to_toml
from foresail.recipe.reward_model import RewardModel
from foresail.recipe.sources import Preferences
from foresail.records import TrainPair
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.learner import save_weights

__all__ = ["LOADS", "Plan", "measure_reward", "smaller"]

CENTER = 0.01


def measure_reward(loads: list[PairLoad], plan: Plan) -> Iterator[dict[str, Any]]:
    figures: dict[str, Any] = {}
    for load in loads:
        figures[load.name] = measure_speed(load, plan)
        yield figures


def measure_speed(load: PairLoad, plan: Plan) -> dict[str, Any]:
    """Medians by side over all counted steps, and how far the losses of equal steps are apart."""
    print(
        f"\nreward model, {load.name} on {load.device}: {load.shape.num_parameters / 1e6:.1f} M parameters, "
        f"{load.pairs} pairs a step in {load.micro_batches} micro-batches, prompts of {load.prompt} and answers of "
        f"{load.answer} tokens",
        flush=True,
    )
    seen: dict[str, list[dict[str, Any]]] = {"theirs": [], "ours": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = prepare(load, folder, plan.steps + 1)
        for number in range(plan.rounds):
            for side in seen:
                counted = run_side(side, load, plan, folder / f"{side}{number}", folder / "classifier", pairs)
                seen[side] += counted
                print(f"  round {number + 1}  {describe(side, summarise(counted))}", flush=True)
    figures: dict[str, Any] = {side: summarise(steps) for side, steps in seen.items()}
    if all(figures.values()):
        for clock, ratio in (("step", "ratio"), ("cpu", "cpu_ratio")):
            figures[ratio] = figures["theirs"][clock] / figures["ours"][clock]
        figures["memory_ratio"] = figures["ours"]["peak_gb"] / figures["theirs"]["peak_gb"]
        both = zip(seen["ours"], seen["theirs"], strict=False)
        figures["loss_difference"] = max(abs(ours["loss"] - theirs["loss"]) for ours, theirs in both)
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


def our_recipe(
    load: PairLoad, plan: Plan, folder: Path, checkpoint: Path, pairs: list[TrainPair]
) -> RewardModel:
    """AdamW as TRL's default has it."""
    longest = max(len(pair.ids) for pair in pairs)
    packed = [len(pair.chosen.ids) + sum(pair.rejected.loss_mask) for pair in pairs]
    at_once = ROOM * load.pairs / load.micro_batches * sum(packed) / len(packed)
    return RewardModel(
        run=parts.Run(name="ours", root=str(folder), device=load.device),
        model=parts.Model(path=str(checkpoint), dtype=load.dtype),
        data=(Preferences(source=str(checkpoint / "pairs.jsonl")),),
        steps=plan.steps + 1,
        batch_size=load.pairs,
        max_length=longest,
        center=CENTER,
        micro_batch_tokens=max(2 * longest, round(at_once)),
        recompute=plan.recompute,
        optimizer=parts.Optimizer(lr=RATE, beta2=0.999),
        checkpoints=parts.Checkpoints(every=NEVER),
    )


def run_side(
    side: str, load: PairLoad, plan: Plan, folder: Path, checkpoint: Path, pairs: list[TrainPair]
) -> list[dict[str, Any]]:
    """The steps after the first, as far as they came within their time."""
    folder.mkdir()
    if side == "ours":
        (folder / "recipe.toml").write_text(to_toml(our_recipe(load, plan, folder, checkpoint, pairs)))
        command = [sys.executable, str(HERE / "ours_reward_model.py"), str(folder)]
    else:
        request = {
            "checkpoint": str(checkpoint),
            "device": load.device,
            "dtype": plan.weights,
            "steps": plan.steps + 1,
            "pairs_per_step": load.pairs,
            "micro_batches": load.micro_batches,
            "recompute": plan.recompute,
            "learning_rate": RATE,
            "center": CENTER,
            "pairs": [
                {"chosen_ids": pair.chosen.ids, "rejected_ids": pair.rejected.ids, "margin": pair.margin}
                for pair in pairs
            ],
        }
        (folder / "request.json").write_text(json.dumps(request))
        command = [plan.peer_python, str(HERE / "peer_reward_model.py"), str(folder)]
    return steps_after_first(command, folder / f"{side}.log", plan.seconds)
