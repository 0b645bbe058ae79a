"""What the parts dpo and reward of `vs_trl.py` share: loads, the file of pairs, both sides' runs and their figures.

Both sides train the same checkpoint on the same tokens in the same order, with as many pairs in an update and about
as many at once. Rounds alternate, each side in a process of its own; the first step of each does not count.
TRL pads, and it has no shared prompts.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from load import NEVER
from plan import Plan, Steps, counted, run_rounds
from process import HERE, run_steps
from seconds import median_seconds
from shapes import SHAPES, SMALL

from foresail.data.preferences.encode import encode_pairs
from foresail.data.selection.order import problem_at
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables import parts
from foresail.recipe.tables.sources import Preferences
from foresail.records import TrainPair
from foresail.tokenizer.tokenizer import Tokenizer

RATE = 1e-5
DIGITS = "123456789"  # a token each
ROOM = 1.1  # of a micro-batch, over its share of the tokens


@dataclass(frozen=True, kw_only=True)
class PairLoad:
    """The same for both sides. Lengths are in tokens, drawn evenly between the two bounds."""

    name: str
    shape: ModelShape
    device: Literal["cpu", "cuda"]
    pairs: int
    micro_batches: int
    prompt: tuple[int, int]
    answer: tuple[int, int]

    def describe(self) -> str:
        return (
            f"{self.name} on {self.device}: {self.shape.num_parameters / 1e6:.1f} M parameters, {self.pairs} "
            f"pairs a step in {self.micro_batches} micro-batches, prompts of {self.prompt} and answers of "
            f"{self.answer} tokens"
        )


DIALOGUE = {"prompt": (100, 300), "answer": (20, 140)}  # about as hh-rlhf's
INSTRUCTIONS = {"prompt": (50, 300), "answer": (100, 500)}  # about as UltraFeedback's
LOADS = {
    load.name: load
    for load in (
        PairLoad(name="dialogue", shape=SMALL, device="cpu", pairs=16, micro_batches=2, **DIALOGUE),
        PairLoad(name="instructions", shape=SMALL, device="cpu", pairs=16, micro_batches=4, **INSTRUCTIONS),
        PairLoad(
            name="smollm2-135m", shape=SHAPES["135M"], device="cuda", pairs=64, micro_batches=2, **DIALOGUE
        ),
        PairLoad(
            name="smollm2-135m-instructions",
            shape=SHAPES["135M"],
            device="cuda",
            pairs=64,
            micro_batches=4,
            **INSTRUCTIONS,
        ),
        PairLoad(
            name="qwen2-1.5b", shape=SHAPES["1.5B"], device="cuda", pairs=32, micro_batches=2, **DIALOGUE
        ),
        PairLoad(
            name="qwen2-1.5b-instructions",
            shape=SHAPES["1.5B"],
            device="cuda",
            pairs=32,
            micro_batches=4,
            **INSTRUCTIONS,
        ),
    )
}


def smaller(load: PairLoad) -> PairLoad:
    """For a glance: a quarter of the pairs."""
    return replace(load, pairs=max(2, load.pairs // 4), micro_batches=1)


# The pairs.

Rows = list[dict[str, Any]]


def random_rows(load: PairLoad, steps: int) -> Rows:
    """Pairs for so many steps, as texts."""
    draw = random.Random(0)

    def text(lengths: tuple[int, int]) -> str:
        return "".join(draw.choice(DIGITS) for _ in range(draw.randint(*lengths)))

    return [
        {"prompt": text(load.prompt), "chosen": text(load.answer), "rejected": text(load.answer)}
        for _ in range(load.pairs * steps)
    ]


def write_pairs(rows: Rows, file: Path, checkpoint: Path) -> list[TrainPair]:
    """The pairs as tokens, in the order in which Foresail draws them from the file."""
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    encoded = encode_pairs(Preferences(source=str(file)), Tokenizer.load(checkpoint)).entries
    return [encoded[problem_at(place, len(rows), 0)] for place in range(len(rows))]


# Both sides.


@dataclass(frozen=True, kw_only=True)
class Task:
    """What both sides begin from."""

    load: PairLoad
    plan: Plan
    checkpoint: Path
    file: Path
    pairs: list[TrainPair]  # of the file, in order


def common_recipe(task: Task) -> dict[str, Any]:
    """What Foresail's recipes of both parts say alike: AdamW as TRL's default has it."""
    load, plan = task.load, task.plan
    return {
        "run": parts.Run(name="ours", device=load.device),
        "model": parts.Model(path=str(task.checkpoint), dtype=plan.precision(load.device)),
        "data": (Preferences(source=str(task.file)),),
        "steps": plan.steps + 1,
        "batch_size": load.pairs,
        "max_length": max(len(pair.ids) for pair in task.pairs),
        "micro_batch_tokens": tokens_at_once(load, task.pairs),
        "recompute": plan.recompute,
        "optimizer": parts.Optimizer(lr=RATE, beta2=0.999),
        "checkpoints": parts.Checkpoints(every=NEVER),
    }


def tokens_at_once(load: PairLoad, pairs: list[TrainPair]) -> int:
    """As many pairs as TRL has at once, prompts counted once; the longest pair fits."""
    packed = [len(pair.chosen.ids) + sum(pair.rejected.loss_mask) for pair in pairs]
    share = ROOM * load.pairs / load.micro_batches * sum(packed) / len(packed)
    return max(2 * max(len(pair.ids) for pair in pairs), round(share))


def common_request(task: Task) -> dict[str, Any]:
    """The part of request.json that TRL's sides of both parts share."""
    load, plan = task.load, task.plan
    return {
        "checkpoint": str(task.checkpoint),
        "device": load.device,
        "precision": plan.precision(load.device),
        "weights": plan.weights,
        "steps": plan.peer_steps + 1,
        "pairs_per_step": load.pairs,
        "micro_batches": load.micro_batches,
        "recompute": plan.recompute,
        "learning_rate": RATE,
    }


def their_pairs(task: Task) -> list[TrainPair]:
    """Those that TRL comes to."""
    return task.pairs[: task.load.pairs * (task.plan.peer_steps + 1)]


def run_sides(
    title: str, task: Task, recipe: Stage, request: Mapping[str, Any], their_command: list[str]
) -> dict[str, Any]:
    """The figures of both; TRL's script finds the request in the folder that is its last argument."""
    plan, home = task.plan, task.file.parent

    def run_side(side: str, number: int) -> Steps:
        folder = home / f"{side}{number}"
        folder.mkdir()
        if side == "ours":
            (folder / "recipe.toml").write_text(to_toml(recipe))
            command, steps = [sys.executable, str(HERE / "ours_stage.py")], plan.steps
        else:
            (folder / "request.json").write_text(json.dumps(request))
            command, steps = their_command, plan.peer_steps
        log = folder / f"{side}.log"
        return run_steps(
            [*command, str(folder)], log, steps=steps + 1, seconds=plan.seconds, turns=plan.turns
        )

    return compare(
        title,
        run_rounds(
            ("theirs", "ours"),
            plan,
            run_side,
            lambda side, steps: f"  {title}: {describe(side, summarise(steps))}",
        ),
    ) | {"precision": plan.precision(task.load.device), "weights": plan.weights}


# Figures.


def compare(title: str, seen: Mapping[str, Steps]) -> dict[str, Any]:
    """Medians by side over all counted steps, and where both have some, what they are to each other."""
    figures: dict[str, Any] = {side: summarise(steps) for side, steps in seen.items()}
    ours, theirs = figures["ours"], figures["theirs"]
    if ours and theirs:
        both = zip(ours["losses"], theirs["losses"], strict=False)
        figures |= {
            "ratio": theirs["step"] / ours["step"],
            "cpu_ratio": theirs["cpu"] / ours["cpu"],
            "memory_ratio": ours["peak_gb"] / theirs["peak_gb"],
            "loss_differences": (apart := [abs(our - their) for our, their in both]),
            "loss_difference": max(apart),
        }
        print(
            f"  {title}: ratio {figures['ratio']:.2f}, of CPU time {figures['cpu_ratio']:.2f}; memory "
            f"{figures['memory_ratio']:.2f} of TRL's; losses of equal steps differ by "
            f"{' '.join(f'{difference:.1e}' for difference in apart)}",
            flush=True,
        )
    return figures


def summarise(all_steps: Steps) -> dict[str, Any]:
    """`losses` are those of all steps, the rest is of those that count."""
    steps = counted(all_steps)
    if not steps:
        return {}
    return median_seconds(steps, ("step", "cpu")) | {
        "steps": len(steps),
        "slowest": max(step["seconds"]["step"] for step in steps),
        "fastest": min(step["seconds"]["step"] for step in steps),
        "peak_gb": max(step["peak_gb"] for step in steps),
        "loss": median(step["loss"] for step in steps),
        "losses": losses_by_step(all_steps),
    }


def losses_by_step(steps: Steps) -> list[float]:
    """Rounds repeat the same steps: 0.7, 0.6 and again 0.7, 0.6 -> [0.7, 0.6]."""
    losses = {step["step"]: step["loss"] for step in steps}
    return [losses[number] for number in sorted(losses)]


def describe(side: str, figures: dict[str, Any]) -> str:
    name = {"theirs": "TRL", "ours": "Foresail"}[side]
    if not figures:
        return f"{name:<9} no step came to its end"
    return (
        f"{name:<9}{figures['step']:>8.3f} s a step, {figures['cpu']:.3f} s of CPU, "
        f"peak {figures['peak_gb']:.2f} GB, losses {' '.join(f'{loss:.6f}' for loss in figures['losses'])}"
    )
