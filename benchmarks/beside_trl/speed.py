"""The speed part of `vs_trl.py`: seconds per step by part, tokens per second and peak memory of both sides.

Rounds alternate, each side in a process of its own; the first step of every process warms up and is not counted.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from load import Load, our_recipe, prepare, their_request, write_recipe, write_request
from process import SideFailed, ask_ours, ask_peer
from seconds import median_seconds
from shapes import SHAPES, SMALL, TINY

PARTS = {"theirs": ("generate", "reward", "old_logprobs", "update"), "ours": ("rollout", "update")}

LOADS = {
    load.name: load
    for load in (
        Load(
            name="tiny",  # the quickstart's size
            shape=TINY,
            device="cpu",
            prompts=32,
            samples=16,
            operations=5,
            new_tokens=40,
            updates=2,
            micro_batches=1,
            page_size=8,
        ),
        Load(
            name="small",
            shape=SMALL,
            device="cpu",
            prompts=16,
            samples=16,
            operations=5,
            new_tokens=64,
            updates=2,
            micro_batches=1,
            page_size=8,
        ),
        Load(
            name="long-prompts",  # as with worked examples before every problem
            shape=SMALL,
            device="cpu",
            prompts=16,
            samples=16,
            operations=60,
            new_tokens=32,
            updates=2,
            micro_batches=1,
            page_size=8,
        ),
        Load(
            name="smollm2-135m",
            shape=SHAPES["135M"],
            device="cuda",
            prompts=32,
            samples=8,
            operations=30,
            new_tokens=256,
            updates=2,
            micro_batches=2,
        ),
        Load(
            name="qwen2-1.5b",
            shape=SHAPES["1.5B"],
            device="cuda",
            prompts=32,
            samples=8,
            operations=30,
            new_tokens=256,
            updates=2,
            micro_batches=4,
        ),
    )
}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """How often and how long: `steps` of each process beyond its warm-up, of TRL's `peer_steps`.

    A process of Foresail's finds out in its first steps whether drafts pay; TRL's has nothing to find out.
    """

    peer_python: str
    rounds: int
    steps: int
    peer_steps: int
    seconds: float  # after which a process is killed
    weights: str = "float32"  # of TRL's model; its mixed precision on a GPU
    recompute: bool = False  # activations in the backward pass, on both sides


def measure_speed(load: Load, plan: Plan) -> dict[str, Any]:
    """Medians by side and part over all counted steps."""
    tokens = load.responses * load.new_tokens
    print(
        f"\nSpeed, {load.name} on {load.device}: {load.shape.num_parameters / 1e6:.1f} M parameters, "
        f"{load.prompts} × {load.samples} responses of {load.new_tokens} tokens, {load.updates} updates",
        flush=True,
    )
    seen: dict[str, list[dict[str, Any]]] = {"theirs": [], "ours": []}
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = Path(folder) / "model"
        prompt_tokens = prepare(load, checkpoint, max(plan.steps, plan.peer_steps) + 1)
        for number in range(plan.rounds):
            for side in seen:
                counted = run_side(
                    side, load, plan, Path(folder) / f"{side}{number}", checkpoint, prompt_tokens
                )
                seen[side] += counted
                print(f"  round {number + 1}  {describe(side, summarise(side, counted))}", flush=True)
    figures: dict[str, Any] = {side: summarise(side, steps) for side, steps in seen.items()}
    for side in figures:
        assert not figures[side] or figures[side]["tokens"] == tokens, (
            f"{side} drew other than {tokens} tokens"
        )
    if all(figures.values()):
        for clock, name in (("step", "ratio"), ("cpu", "cpu_ratio")):
            figures[name] = figures["theirs"][clock] / figures["ours"][clock]
        print(f"  ratio {figures['ratio']:.1f}, of CPU time {figures['cpu_ratio']:.1f}", flush=True)
    return figures | {"prompt_tokens": prompt_tokens, "weights": plan.weights, "recompute": plan.recompute}


def run_side(
    side: str, load: Load, plan: Plan, folder: Path, checkpoint: Path, prompt_tokens: int
) -> list[dict[str, Any]]:
    """The steps after the warm-up, as far as they came within their time."""
    if side == "ours":
        recipe = our_recipe(
            load,
            folder,
            checkpoint,
            steps=plan.steps + 1,
            prompt_tokens=prompt_tokens,
            recompute=plan.recompute,
        )
        write_recipe(folder, recipe)
        lines = ask_ours(folder, seconds=plan.seconds)
    else:
        weights, recompute = plan.weights, plan.recompute
        request = their_request(
            load, checkpoint, steps=plan.peer_steps + 1, weights=weights, recompute=recompute
        )
        write_request(folder, request)
        lines = ask_peer(plan.peer_python, "steps", folder, seconds=plan.seconds)
    steps = []
    try:
        for line in lines:
            if "prompt_ids" in line:
                assert len(line["prompt_ids"]) == prompt_tokens, (
                    f"{side} reads prompts as {line['prompt_ids']}"
                )
            if line.get("step", 1) > 1:
                steps.append(line)
    except SideFailed as failure:  # out of memory, say: the other side and the other loads still count
        print(f"  {failure}", flush=True)
    return steps


def summarise(side: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
    if not steps:
        return {}
    figures = median_seconds(steps, (*PARTS[side], "step", "cpu"))
    tokens = median(step["tokens"] for step in steps)
    return figures | {
        "steps": len(steps),
        "tokens": tokens,
        "tokens_per_second": tokens / figures["step"],
        "slowest": max(step["seconds"]["step"] for step in steps),
        "fastest": min(step["seconds"]["step"] for step in steps),
        "peak_gb": steps[-1]["peak_gb"],
    }


def describe(side: str, figures: dict[str, Any]) -> str:
    name = {"theirs": "TRL", "ours": "Foresail"}[side]
    if not figures:
        return f"{name:<9} no step came to its end"
    parts = ", ".join(f"{part} {figures[part]:.3f}" for part in PARTS[side])
    memory = f", peak {figures['peak_gb']:.1f} GB" if figures["peak_gb"] else ""
    return f"{name:<9}{figures['step']:>8.3f} s a step ({parts}){memory}, {figures['cpu']:.3f} s of CPU"


def smaller(load: Load) -> Load:
    """For a glance: the same load with a quarter of the prompts and half the tokens."""
    return replace(load, prompts=load.prompts // 4, new_tokens=load.new_tokens // 2)
