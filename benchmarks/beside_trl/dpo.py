"""The part dpo of `vs_trl.py`: losses of preference pairs, then seconds a step, peak memory and losses of runs.

Both sides train the same checkpoint on the same tokens in the same order, with as many pairs in an update and about
as many at once. Rounds alternate, each side in a process of its own; the first step of each does not count.
TRL pads: its setting for batches without padding does nothing in 1.16, and it has no shared prompts.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from gpu_loads import SHAPES

from beside_trl import dpo_losses
from beside_trl.load import NEVER, Load, make_checkpoint
from beside_trl.process import HERE, steps_after_first
from beside_trl.seconds import median_seconds
from beside_trl.speed import SMALL
from foresail.data.order import problem_at
from foresail.data.pairs import encode_pairs
from foresail.recipe import parts
from foresail.recipe.dpo import Dpo
from foresail.recipe.dump import to_toml
from foresail.recipe.preferences import PreferenceLoss, Reference
from foresail.recipe.shape import ModelShape
from foresail.recipe.sources import Preferences
from foresail.records import TrainPair
from foresail.tokenizer.tokenizer import Tokenizer

RATE, BETA = 1e-5, 0.1
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

    @property
    def dtype(self) -> Literal["float32", "bfloat16"]:
        return "bfloat16" if self.device == "cuda" else "float32"


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


def measure_dpo(loads: list[PairLoad], plan: Plan) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        figures: dict[str, Any] = {"losses": dpo_losses.measure_losses(Path(folder), plan.peer_python)}
    yield figures
    for load in loads:
        figures[load.name] = measure_speed(load, plan)
        yield figures


def measure_speed(load: PairLoad, plan: Plan) -> dict[str, Any]:
    """Medians by side over all counted steps, and how far the losses of equal steps are apart."""
    print(
        f"\nDPO, {load.name} on {load.device}: {load.shape.num_parameters / 1e6:.1f} M parameters, {load.pairs} "
        f"pairs a step in {load.micro_batches} micro-batches, prompts of {load.prompt} and answers of "
        f"{load.answer} tokens, reference {'kept' if plan.kept else 'at every step'}",
        flush=True,
    )
    seen: dict[str, list[dict[str, Any]]] = {"theirs": [], "ours": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pairs = prepare(load, folder / "model", plan.steps + 1)
        for number in range(plan.rounds):
            for side in seen:
                counted = run_side(side, load, plan, folder / f"{side}{number}", folder / "model", pairs)
                seen[side] += counted
                print(f"  round {number + 1}  {describe(side, summarise(counted))}", flush=True)
    figures: dict[str, Any] = {side: summarise(steps) for side, steps in seen.items()}
    if all(figures.values()):
        for clock, ratio in (("step", "ratio"), ("cpu", "cpu_ratio")):
            figures[ratio] = figures["theirs"][clock] / figures["ours"][clock]
        figures["loss_difference"] = max(
            abs(ours["loss"] - theirs["loss"])
            for ours, theirs in zip(seen["ours"], seen["theirs"], strict=False)
        )
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


def prepare(load: PairLoad, checkpoint: Path, steps: int) -> list[TrainPair]:
    """A checkpoint and a file of pairs for so many steps, in the order in which Foresail draws them."""
    make_checkpoint(
        checkpoint,
        Load(
            name=load.name,
            shape=load.shape,
            device=load.device,
            prompts=1,
            samples=1,
            operations=1,
            new_tokens=1,
            updates=1,
            micro_batches=1,
        ),
    )
    draw = random.Random(0)

    def text(lengths: tuple[int, int]) -> str:
        return "".join(draw.choice(DIGITS) for _ in range(draw.randint(*lengths)))

    count = load.pairs * steps
    rows = [
        {"prompt": text(load.prompt), "chosen": text(load.answer), "rejected": text(load.answer)}
        for _ in range(count)
    ]
    file = checkpoint / "pairs.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    encoded = encode_pairs(Preferences(source=str(file)), Tokenizer.load(checkpoint)).entries
    return [encoded[problem_at(place, count, 0)] for place in range(count)]


def our_recipe(load: PairLoad, plan: Plan, folder: Path, checkpoint: Path, pairs: list[TrainPair]) -> Dpo:
    """AdamW as TRL's default has it."""
    longest = max(len(pair.ids) for pair in pairs)
    packed = [len(pair.chosen.ids) + sum(pair.rejected.loss_mask) for pair in pairs]
    at_once = ROOM * load.pairs / load.micro_batches * sum(packed) / len(packed)
    return Dpo(
        run=parts.Run(name="ours", root=str(folder), device=load.device),
        model=parts.Model(path=str(checkpoint), dtype=load.dtype),
        data=(Preferences(source=str(checkpoint / "pairs.jsonl")),),
        steps=plan.steps + 1,
        batch_size=load.pairs,
        max_length=longest,
        micro_batch_tokens=max(2 * longest, round(at_once)),
        recompute=plan.recompute,
        loss=PreferenceLoss(beta=BETA),
        reference=Reference(kept=plan.kept),
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
        command = [sys.executable, str(HERE / "ours_dpo.py"), str(folder)]
    else:
        request = {
            "checkpoint": str(checkpoint),
            "device": load.device,
            "dtype": plan.weights,
            "steps": plan.steps + 1,
            "pairs_per_step": load.pairs,
            "micro_batches": load.micro_batches,
            "kept": plan.kept,
            "recompute": plan.recompute,
            "learning_rate": RATE,
            "beta": BETA,
            "pairs": [dpo_losses.as_ids(pair) for pair in pairs],
        }
        (folder / "request.json").write_text(json.dumps(request))
        command = [plan.peer_python, str(HERE / "peer_dpo.py"), "steps", str(folder)]
    return steps_after_first(command, folder / f"{side}.log", plan.seconds)


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


def smaller(load: PairLoad) -> PairLoad:
    """For a glance: a quarter of the pairs."""
    return replace(load, pairs=max(2, load.pairs // 4), micro_batches=1)
