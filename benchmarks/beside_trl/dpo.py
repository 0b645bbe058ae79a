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
from beside_trl.load import NEVER
from beside_trl.plan import Plan, Steps, run_rounds
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
    """Medians by side over all counted steps, and how far the losses of equal steps are apart."""
    print(
        f"\nDPO, {load.describe()}, reference {'kept' if plan.kept else 'at every step'}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with plan.turns.start():
            checkpoint = plan.models.language_model(load.shape, load.device, load.dtype)
            pairs = prepare(load, folder / "pairs.jsonl", checkpoint, plan.steps + 1)
        seen = run_rounds(
            ("theirs", "ours"),
            plan,
            lambda side, number: run_side(side, load, plan, folder / f"{side}{number}", checkpoint, pairs),
            lambda side, steps: f"  DPO, {load.name}: {describe(side, summarise(steps))}",
        )
    figures = compare(f"DPO, {load.name}", seen)
    tokens = [len(pair.chosen.ids) + len(pair.rejected.ids) for pair in pairs]
    return figures | {
        "kept": plan.kept,
        "weights": plan.weights,
        "tokens_per_pair": sum(tokens) / len(tokens),
    }


def compare(title: str, seen: dict[str, Steps]) -> dict[str, Any]:
    """The figures of both sides, and where both have some, what they are to each other."""
    figures: dict[str, Any] = {side: summarise(steps) for side, steps in seen.items()}
    ours, theirs = figures["ours"], figures["theirs"]
    if ours and theirs:
        both = zip(seen["ours"], seen["theirs"], strict=False)
        figures |= {
            "ratio": theirs["step"] / ours["step"],
            "cpu_ratio": theirs["cpu"] / ours["cpu"],
            "memory_ratio": ours["peak_gb"] / theirs["peak_gb"],
            "loss_difference": max(abs(our["loss"] - their["loss"]) for our, their in both),
        }
        print(
            f"  {title}: ratio {figures['ratio']:.2f}, of CPU time {figures['cpu_ratio']:.2f}; memory "
            f"{figures['memory_ratio']:.2f} of TRL's; losses of equal steps differ by "
            f"{figures['loss_difference']:.1e} at the most",
            flush=True,
        )
    return figures


def prepare(load: PairLoad, file: Path, checkpoint: Path, steps: int) -> list[TrainPair]:
    """A file of pairs for so many steps; the pairs are in the order in which Foresail draws them."""
    draw = random.Random(0)

    def text(lengths: tuple[int, int]) -> str:
        return "".join(draw.choice(DIGITS) for _ in range(draw.randint(*lengths)))

    count = load.pairs * steps
    rows = [
        {"prompt": text(load.prompt), "chosen": text(load.answer), "rejected": text(load.answer)}
        for _ in range(count)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    encoded = encode_pairs(Preferences(source=str(file)), Tokenizer.load(checkpoint)).entries
    return [encoded[problem_at(place, count, 0)] for place in range(count)]


def our_recipe(load: PairLoad, plan: DpoPlan, folder: Path, checkpoint: Path, pairs: list[TrainPair]) -> Dpo:
    """AdamW as TRL's default has it."""
    longest = max(len(pair.ids) for pair in pairs)
    return Dpo(
        run=parts.Run(name="ours", root=str(folder), device=load.device),
        model=parts.Model(path=str(checkpoint), dtype=load.dtype),
        data=(Preferences(source=str(folder.parent / "pairs.jsonl")),),
        steps=plan.steps + 1,
        batch_size=load.pairs,
        max_length=longest,
        micro_batch_tokens=tokens_at_once(load, pairs),
        recompute=plan.recompute,
        loss=PreferenceLoss(beta=BETA),
        reference=Reference(kept=plan.kept),
        optimizer=parts.Optimizer(lr=RATE, beta2=0.999),
        checkpoints=parts.Checkpoints(every=NEVER),
    )


def tokens_at_once(load: PairLoad, pairs: list[TrainPair]) -> int:
    """As many pairs as TRL has at once, prompts counted once; the longest pair fits."""
    packed = [len(pair.chosen.ids) + sum(pair.rejected.loss_mask) for pair in pairs]
    share = ROOM * load.pairs / load.micro_batches * sum(packed) / len(packed)
    return max(2 * max(len(pair.ids) for pair in pairs), round(share))


def run_side(
    side: str, load: PairLoad, plan: DpoPlan, folder: Path, checkpoint: Path, pairs: list[TrainPair]
) -> list[dict[str, Any]]:
    """The steps after the first, as far as they came within their time."""
    folder.mkdir()
    steps = plan.steps if side == "ours" else plan.peer_steps
    if side == "ours":
        (folder / "recipe.toml").write_text(to_toml(our_recipe(load, plan, folder, checkpoint, pairs)))
        command = [sys.executable, str(HERE / "ours_dpo.py"), str(folder)]
    else:
        request = {
            "checkpoint": str(checkpoint),
            "device": load.device,
            "dtype": plan.weights,
            "steps": steps + 1,
            "pairs_per_step": load.pairs,
            "micro_batches": load.micro_batches,
            "kept": plan.kept,
            "recompute": plan.recompute,
            "learning_rate": RATE,
            "beta": BETA,
            "pairs": [dpo_losses.as_ids(pair) for pair in pairs[: load.pairs * (steps + 1)]],
        }
        (folder / "request.json").write_text(json.dumps(request))
        command = [plan.peer_python, str(HERE / "peer_dpo.py"), "steps", str(folder)]
    log = folder / f"{side}.log"
    return steps_after_first(command, log, steps=steps, seconds=plan.seconds, turns=plan.turns)


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
