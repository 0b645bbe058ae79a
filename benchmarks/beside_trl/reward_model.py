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
from pathlib import Path
from typing import Any

from beside_trl.dpo import LOADS, RATE, PairLoad, compare, describe, smaller, summarise, tokens_at_once
from beside_trl.dpo import prepare as prepare_pairs
from beside_trl.load import NEVER
from beside_trl.plan import Plan, run_rounds
from beside_trl.process import HERE, steps_after_first
from foresail.data.order import problem_at
from foresail.data.pairs import encode_pairs
from foresail.data.scored_pairs import end_with_answers
from foresail.recipe import parts
from foresail.recipe.dump import to_toml
from foresail.recipe.reward_model import RewardModel
from foresail.recipe.sources import Preferences
from foresail.records import TrainPair
from foresail.tokenizer.tokenizer import Tokenizer

__all__ = ["LOADS", "Plan", "measure_reward", "smaller"]

CENTER = 0.01


def measure_reward(loads: list[PairLoad], plan: Plan) -> Iterator[dict[str, Any]]:
    figures: dict[str, Any] = {}
    for load in loads:
        figures[load.name] = measure_speed(load, plan)
        yield figures


def measure_speed(load: PairLoad, plan: Plan) -> dict[str, Any]:
    """Medians by side over all counted steps, and how far the losses of equal steps are apart."""
    print(f"\nreward model, {load.describe()}", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with plan.turns.start():
            checkpoint = plan.models.classifier(load.shape, load.device, load.dtype)
            pairs = prepare(load, folder / "pairs.jsonl", checkpoint, plan.steps + 1)
        seen = run_rounds(
            ("theirs", "ours"),
            plan,
            lambda side, number: run_side(side, load, plan, folder / f"{side}{number}", checkpoint, pairs),
            lambda side, steps: f"  reward model, {load.name}: {describe(side, summarise(steps))}",
        )
    return compare(f"reward model, {load.name}", seen)


def prepare(load: PairLoad, file: Path, checkpoint: Path, steps: int) -> list[TrainPair]:
    """A file of pairs with margins for so many steps; the pairs are in the order in which Foresail draws them."""
    prepare_pairs(load, file, checkpoint, steps)
    margins = random.Random(1)
    rows = [
        json.loads(line) | {"margin": round(margins.random(), 3)} for line in file.read_text().splitlines()
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    encoded = encode_pairs(Preferences(source=str(file)), Tokenizer.load(checkpoint)).entries
    return [end_with_answers(encoded[problem_at(place, len(rows), 0)]) for place in range(len(rows))]


def our_recipe(
    load: PairLoad, plan: Plan, folder: Path, checkpoint: Path, pairs: list[TrainPair]
) -> RewardModel:
    """AdamW as TRL's default has it."""
    longest = max(len(pair.ids) for pair in pairs)
    return RewardModel(
        run=parts.Run(name="ours", root=str(folder), device=load.device),
        model=parts.Model(path=str(checkpoint), dtype=load.dtype),
        data=(Preferences(source=str(folder.parent / "pairs.jsonl")),),
        steps=plan.steps + 1,
        batch_size=load.pairs,
        max_length=longest,
        center=CENTER,
        micro_batch_tokens=tokens_at_once(load, pairs),
        recompute=plan.recompute,
        optimizer=parts.Optimizer(lr=RATE, beta2=0.999),
        checkpoints=parts.Checkpoints(every=NEVER),
    )


def run_side(
    side: str, load: PairLoad, plan: Plan, folder: Path, checkpoint: Path, pairs: list[TrainPair]
) -> list[dict[str, Any]]:
    """The steps after the first, as far as they came within their time."""
    folder.mkdir()
    steps = plan.steps if side == "ours" else plan.peer_steps
    if side == "ours":
        (folder / "recipe.toml").write_text(to_toml(our_recipe(load, plan, folder, checkpoint, pairs)))
        command = [sys.executable, str(HERE / "ours_reward_model.py"), str(folder)]
    else:
        request = {
            "checkpoint": str(checkpoint),
            "device": load.device,
            "dtype": plan.weights,
            "steps": steps + 1,
            "pairs_per_step": load.pairs,
            "micro_batches": load.micro_batches,
            "recompute": plan.recompute,
            "learning_rate": RATE,
            "center": CENTER,
            "pairs": [
                {"chosen_ids": pair.chosen.ids, "rejected_ids": pair.rejected.ids, "margin": pair.margin}
                for pair in pairs[: load.pairs * (steps + 1)]
            ],
        }
        (folder / "request.json").write_text(json.dumps(request))
        command = [plan.peer_python, str(HERE / "peer_reward_model.py"), str(folder)]
    log = folder / f"{side}.log"
    return steps_after_first(command, log, steps=steps, seconds=plan.seconds, turns=plan.turns)
