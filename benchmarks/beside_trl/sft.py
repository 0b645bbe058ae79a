"""The SFT part of `vs_trl.py`: Foresail's SFT beside TRL's SFTTrainer, both on packed conversations.

Losses: 50 steps in float32 from one checkpoint. Both sides get the same conversations in every step: TRL's in the
order in which Foresail draws them, `batch_size` of them flattened into one sequence by its padding-free collator,
which is also what its packing uses. Both take the mean over all learnt tokens of the step, AdamW with the same
numbers, and a constant rate.

Speed: TRL packs the conversations by best fit (`packing_strategy="bfd"`) into rows of `max_length`, one row at a
time, as many as an update has; or, where that is faster, pads them. Foresail packs an update's conversations into
micro-batches of as many tokens. Tokens are counted without padding.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from load import NEVER
from plan import Plan, Steps, counted, run_rounds
from process import HERE, replies, run_steps
from seconds import median_seconds
from shapes import SHAPES

from foresail.data.mixtures.reader import Reader
from foresail.data.selection.order import problem_at
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables import parts
from foresail.recipe.tables.sources import Conversations
from foresail.tokenizer.tokenizer import Tokenizer

Rows = list[dict[str, list[int]]]  # ids and loss_mask of each conversation
SMALL = ModelShape(
    family="llama",
    vocab_size=2048,
    hidden_size=128,
    intermediate_size=384,
    num_layers=4,
    num_heads=4,
    num_kv_heads=2,
    head_dim=32,
    max_context=4096,
)
RATE, BETA2 = 1e-4, 0.95
# Of a real checkpoint: at 1e-4 a few dozen conversations are known by heart within 30 steps, and rounding grows
# a thousandfold there.
REAL_RATE = 1e-5
LIMIT = 5e-4  # of a loss's difference: three decimals


@dataclass(frozen=True, kw_only=True)
class SftLoad:
    """`middle` is the median length of conversations, at most `max_length`; an update has `rows` packed rows.
    TRL computes one row at a time, Foresail `at_once` tokens: more where that still takes less memory.
    """

    name: str
    shape: ModelShape
    device: Literal["cpu", "cuda"]
    max_length: int
    middle: int
    rows: int
    at_once: int


LOADS = {
    load.name: load
    for load in (
        SftLoad(name="small", shape=SMALL, device="cpu", max_length=1024, middle=100, rows=4, at_once=1024),
        SftLoad(
            name="smollm2-135m",
            shape=SHAPES["135M"],
            device="cuda",
            max_length=4096,
            middle=400,
            rows=8,
            at_once=6144,
        ),
        SftLoad(
            name="qwen2-1.5b",
            shape=SHAPES["1.5B"],
            device="cuda",
            max_length=4096,
            middle=400,
            rows=8,
            at_once=6144,
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class SftPlan(Plan):
    """`modes` are TRL's ways to batch, `attentions` its ways to attend: each pair is tried, the fastest counts."""

    modes: tuple[str, ...] = ("packed", "padded")
    attentions: tuple[str, ...] = ("sdpa",)


def measure_sft(
    loads: list[SftLoad], plan: SftPlan, *, model: Path, device: Literal["cpu", "cuda"], loss_steps: int
) -> Iterator[dict[str, Any]]:
    """Losses of so many steps first, if any."""
    results: dict[str, Any] = {}
    if loss_steps:
        for losses in measure_losses(device, plan, model, steps=loss_steps, seconds=3600.0):
            results["losses"] = losses
            yield results
    for load in loads:
        results[load.name] = measure_speed(load, plan)
        yield results


# Losses.


def measure_losses(
    device: Literal["cpu", "cuda"], plan: SftPlan, model: Path, *, steps: int, seconds: float
) -> Iterator[dict[str, Any]]:
    """Of a small random model, and of a real checkpoint where there is one."""
    results: dict[str, Any] = {}
    for name in ("small", "checkpoint") if model.is_dir() else ("small",):
        with tempfile.TemporaryDirectory() as folder, plan.turns.start():
            if name == "small":
                checkpoint, batch_size = plan.models.language_model(SMALL, device, "float32"), 8
                rows = random_rows(60, SMALL.vocab_size, middle=40, most=128)
            else:
                checkpoint, batch_size = model.resolve(), 4
                rows = word_problem_rows(checkpoint, 120)
            rate = RATE if name == "small" else REAL_RATE
            results[name] = compare_losses(
                Path(folder), checkpoint, rows, batch_size, rate, device, plan.peer_python, steps, seconds
            )
        print(describe_losses(name, results[name]), flush=True)
        yield results


def compare_losses(
    folder: Path,
    checkpoint: Path,
    rows: Rows,
    batch_size: int,
    rate: float,
    device: Literal["cpu", "cuda"],
    peer_python: str,
    steps: int,
    seconds: float,
) -> dict[str, Any]:
    recipe = our_recipe(
        folder, checkpoint, device, "float32", batch_size=batch_size, steps=steps, most=4096, rate=rate
    )
    order = [rows[problem_at(position, len(rows), 0)] for position in range(steps * batch_size)]
    request = their_request(
        checkpoint, device, "float32", steps=steps, weights="float32", attention="sdpa"
    ) | {"reads_losses": True}
    request["settings"] |= {
        "padding_free": True,
        "max_length": None,
        "per_device_train_batch_size": batch_size,
        "train_sampling_strategy": "sequential",
        "shuffle_dataset": False,
        "learning_rate": rate,
    }
    commands = [
        our_command(folder / "ours", recipe, rows),
        their_command(peer_python, folder / "theirs", request, order),
    ]
    with ThreadPoolExecutor() as both:  # at once, for nothing is timed here
        said = both.map(
            lambda command: [*replies(command, Path(command[-1]) / "side.log", seconds)], commands
        )
    (_, *ours), (told, *theirs) = said  # the first line of each has its versions
    pairs = [(our["loss"], their["loss"]) for our, their in zip(ours, theirs, strict=False)]
    differences = [abs(our - their) for our, their in pairs]
    return {
        "versions": told["versions"],
        "steps": len(pairs),
        "first": pairs[0],
        "last": pairs[-1],
        "largest_difference": max(differences),
        "differences": differences,
        "same_tokens": all(
            our["tokens"] == their["tokens"] for our, their in zip(ours, theirs, strict=False)
        ),
        "agrees": len(pairs) == steps and max(differences) < LIMIT,
    }


def describe_losses(name: str, differences: dict[str, Any]) -> str:
    return (
        f"  losses, {name}: {differences['steps']} steps, {differences['first'][0]:.4f} to "
        f"{differences['last'][0]:.4f} (TRL {differences['last'][1]:.4f}), "
        f"largest difference {differences['largest_difference']:.1e}, "
        f"{'the same' if differences['same_tokens'] else 'OTHER'} tokens"
    )


# Speed.


def measure_speed(load: SftLoad, plan: SftPlan) -> dict[str, Any]:
    print(
        f"\nSFT, {load.name} on {load.device}: {load.shape.num_parameters / 1e6:.1f} M parameters, updates of "
        f"{load.rows * load.max_length:,} tokens, conversations of {load.middle} (median) to {load.max_length}",
        flush=True,
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with plan.turns.start():
            checkpoint = plan.models.language_model(load.shape, load.device, plan.precision(load.device))
            rows, batch_size = make_rows(load, plan.steps + 1)
        seen = run_rounds(
            ("ours", *(f"{mode} {kind}" for mode in plan.modes for kind in plan.attentions)),
            plan,
            lambda side, number: run_side(
                side, load, plan, folder / f"{side.replace(' ', '-')}{number}", checkpoint, rows, batch_size
            ),
            lambda side, steps: f"  SFT, {load.name}: {describe(side, summarise(steps))}",
        )
    figures: dict[str, Any] = {side: summarise(steps) for side, steps in seen.items()}
    theirs = {side: measured for side, measured in figures.items() if side != "ours" and measured}
    if figures["ours"] and theirs:
        # on a CPU by its own time, which a busy machine does not change
        pace = "tokens_per_cpu_second" if load.device == "cpu" else "tokens_per_second"
        best = max(theirs, key=lambda side: theirs[side][pace])
        ratios = {
            "ratio": figures["ours"]["tokens_per_second"] / theirs[best]["tokens_per_second"],
            "cpu_ratio": figures["ours"]["tokens_per_cpu_second"] / theirs[best]["tokens_per_cpu_second"],
            "memory_ratio": figures["ours"]["peak_gb"] / theirs[best]["peak_gb"],
        }
        print(
            f"  SFT, {load.name}: TRL's best: {best}; {', '.join(f'{k} {v:.2f}' for k, v in ratios.items())}",
            flush=True,
        )
        figures |= {"best": best, **ratios}
    return figures | {
        "precision": plan.precision(load.device),
        "weights": plan.weights,
        "recompute": plan.recompute,
        "batch_size": batch_size,
    }


def run_side(
    side: str, load: SftLoad, plan: SftPlan, folder: Path, checkpoint: Path, rows: Rows, batch_size: int
) -> Steps:
    """All steps, as far as they came within their time."""
    if side == "ours":
        steps = plan.steps
        recipe = our_recipe(
            folder,
            checkpoint,
            load.device,
            plan.precision(load.device),
            batch_size=batch_size,
            steps=steps + 1,
            most=load.max_length,
            at_once=load.at_once,
            recompute=plan.recompute,
        )
        command = our_command(folder, recipe, rows)
    else:
        steps, (mode, attention) = plan.peer_steps, side.split()
        request = their_request(
            checkpoint,
            load.device,
            plan.precision(load.device),
            steps=steps + 1,
            weights=plan.weights if load.device == "cuda" else "float32",
            attention=attention,
            recompute=plan.recompute,
        )
        mean = sum(len(row["ids"]) for row in rows) / len(rows)
        request["settings"] |= MODES[mode](load, max(1, round(load.max_length / mean)))
        command = their_command(plan.peer_python, folder, request, rows)
    log = folder / "side.log"
    return run_steps(command, log, steps=steps + 1, seconds=plan.seconds, turns=plan.turns)


def packed(load: SftLoad, _: int) -> dict[str, Any]:
    """One row at a time: with several, dense masks of all their tokens would be built."""
    return {
        "packing": True,
        "packing_strategy": "bfd",
        "max_length": load.max_length,
        "per_device_train_batch_size": 1,
        "gradient_accumulation_steps": load.rows,
    }


def padded(load: SftLoad, at_once: int) -> dict[str, Any]:
    """As many conversations at a time as a packed row has, of like lengths, so that little is padded."""
    return {
        "max_length": load.max_length,
        "per_device_train_batch_size": at_once,
        "gradient_accumulation_steps": load.rows,
        "train_sampling_strategy": "group_by_length",
    }


MODES = {"packed": packed, "padded": padded}


def summarise(all_steps: Steps) -> dict[str, Any]:
    steps = counted(all_steps)
    if not steps:
        return {}
    figures = median_seconds(steps, ("step", "cpu"))
    return figures | {
        "steps": len(steps),
        "tokens": median(step["tokens"] for step in steps),
        "tokens_per_second": median(step["tokens"] / step["seconds"]["step"] for step in steps),
        "tokens_per_cpu_second": median(step["tokens"] / step["seconds"]["cpu"] for step in steps),
        "peak_gb": max(step["peak_gb"] for step in steps),
    }


def describe(side: str, figures: dict[str, Any]) -> str:
    name = "Foresail" if side == "ours" else f"TRL {side}"
    if not figures:
        return f"{name:<18} no step came to its end"
    return (
        f"{name:<18}{figures['step']:>8.3f} s a step of {figures['tokens']:,.0f} tokens, "
        f"{figures['tokens_per_second']:,.0f} tokens/s, peak {figures['peak_gb']:.2f} GB, "
        f"{figures['cpu']:.3f} s of CPU"
    )


# What both get.


def make_rows(load: SftLoad, steps: int) -> tuple[Rows, int]:
    """Conversations for so many steps, and how many of them a step has."""
    count = 3 * (steps + 1) * load.rows * load.max_length // load.middle
    rows = random_rows(count, load.shape.vocab_size, middle=load.middle, most=load.max_length)
    mean = sum(len(row["ids"]) for row in rows) / len(rows)
    batch_size = round(load.rows * load.max_length / mean)
    return rows[: batch_size * steps], batch_size


def random_rows(count: int, vocab_size: int, *, middle: int, most: int) -> Rows:
    """Lengths as conversations have them: many short ones, few long; two thirds of each are answer."""
    draw = random.Random(0)
    rows = []
    for _ in range(count):
        length = min(most, max(8, round(middle * draw.lognormvariate(0, 0.8))))
        prompt = max(1, length // 3)
        ids = [draw.randrange(vocab_size) for _ in range(length)]
        rows.append({"ids": ids, "loss_mask": [0] * prompt + [1] * (length - prompt)})
    return rows


def word_problem_rows(checkpoint: Path, count: int) -> Rows:
    reader = Reader(Tokenizer.load(checkpoint))
    sequences = reader.conversations(Conversations(source=f"word-problems:count={count}"))
    return [{"ids": sequence.ids, "loss_mask": sequence.loss_mask} for sequence in sequences]


def our_recipe(
    folder: Path,
    checkpoint: Path,
    device: Literal["cpu", "cuda"],
    dtype: Literal["float32", "bfloat16"],
    *,
    batch_size: int,
    steps: int,
    most: int,
    at_once: int | None = None,
    rate: float = RATE,
    recompute: bool = False,
) -> Sft:
    return Sft(
        run=parts.Run(name="run", root=str(folder / "runs"), device=device),
        model=parts.Model(path=str(checkpoint), dtype=dtype),
        data=(Conversations(source="conversations.jsonl"),),
        steps=steps,
        batch_size=batch_size,
        max_length=most,
        micro_batch_tokens=at_once or most,
        recompute=recompute,
        optimizer=parts.Optimizer(lr=rate, beta2=BETA2),
        checkpoints=parts.Checkpoints(every=NEVER),
    )


def their_request(
    checkpoint: Path,
    device: str,
    precision: str,
    *,
    steps: int,
    weights: str,
    attention: str,
    recompute: bool = False,
) -> dict[str, Any]:
    settings = {
        "learning_rate": RATE,
        "lr_scheduler_type": "constant",
        "adam_beta2": BETA2,
        "weight_decay": 0.0,
    }
    return {
        "checkpoint": str(checkpoint),
        "device": device,
        "steps": steps,
        "weights": weights,
        "bfloat16": precision == "bfloat16",
        "attention": attention,
        "recompute": recompute,
        "reads_losses": False,
        "settings": settings,
    }


def our_command(folder: Path, recipe: Sft, rows: Rows) -> list[str]:
    """Of the process that reads what is written here."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.toml").write_text(to_toml(recipe))
    (folder / "conversations.json").write_text(json.dumps(rows))
    return [sys.executable, str(HERE / "sft_ours.py"), str(folder)]


def their_command(python: str, folder: Path, request: dict[str, Any], rows: Rows) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "request.json").write_text(json.dumps(request))
    (folder / "conversations.json").write_text(json.dumps(rows))
    return [python, str(HERE / "sft_peer.py"), str(folder)]
