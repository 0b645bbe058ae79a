"""The race of `vs_trl.py`: reward against wall-clock on the quickstart's arithmetic, both from one SFT checkpoint.

Each side gets the best of the same learning rates, found on one seed; other seeds race. The batch is the same, 32
problems × 16 samples and two updates; so are clip bounds, the reward function and the number of steps. Beyond that
each does as it does: TRL with its defaults and a constant rate, Foresail with the quickstart's recipe. A step's
reward is the mean over all samples drawn in it, before any are filtered out: the policy's own rate on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from trl_load import NEVER, write_recipe, write_request
from trl_plots import draw_race
from trl_process import HERE, ask_ours, ask_peer

from foresail.evaluate.checkpoint import evaluate_checkpoint
from foresail.recipe import parts
from foresail.recipe.stages import Rl
from foresail.train.quickstart import (
    DTYPE,
    MAX_NEW_TOKENS,
    headline,
    rl_recipe,
    run_stage,
    sft_recipe,
    test_set,
    write_problems,
    write_tokenizer,
)
from foresail.train.sft import run_sft

SIDES = ("theirs", "ours")
WINDOW = 5  # steps a reward is averaged over
REWARD = f"{HERE / 'trl_reward.py'}:boxed"
CLIP_LOW, CLIP_HIGH = 0.2, 0.28
WARMUP = 2  # updates


@dataclass(frozen=True, kw_only=True)
class Race:
    """`rates` are tried on seed 0; `seeds` race."""

    peer_python: str
    home: Path  # data and cold start; one that is there is used again
    runs: Path
    rates: tuple[float, ...]
    seeds: tuple[int, ...]
    steps: int
    seconds: float  # after which a process is killed


def measure_race(race: Race, output: Path) -> dict[str, Any]:
    start = cold_start(race.home)
    print(f"\nReward against wall-clock: {race.steps} steps, means over {WINDOW} steps", flush=True)
    chosen = {}
    for side in SIDES:
        ends = {rate: final(run(side, race, start, rate, seed=0)["steps"]) for rate in race.rates}
        chosen[side] = max(ends, key=lambda rate: ends[rate])
        tried = ", ".join(f"{rate:g} {end:.3f}" for rate, end in ends.items())
        print(f"  {name_of(side):<9} final reward by learning rate: {tried}", flush=True)
    laps = []
    for seed in race.seeds:
        runs = {side: run(side, race, start, chosen[side], seed=seed) for side in SIDES}
        laps.append(compare(runs, seed, race))
        print(describe(laps[-1]), flush=True)
    draw_race(laps, output / "race.png", window=WINDOW)
    return {
        "rates": chosen,
        "speed_up": median(lap["speed_up"] or 0.0 for lap in laps),
        "laps": [{key: lap[key] for key in lap if key != "curves"} for lap in laps],
    }


def name_of(side: str) -> str:
    return {"theirs": "TRL", "ours": "Foresail"}[side]


# Running.


def cold_start(folder: Path) -> Path:
    """The quickstart's own: problems, tokenizer, SFT; a Hugging Face checkpoint that both sides load."""
    write_problems(folder / "data", 0)
    tokenizer = write_tokenizer(folder)
    return run_stage(run_sft, sft_recipe(folder, 0, tokenizer.vocab_size)).checkpoint


def run(side: str, race: Race, start: Path, rate: float, *, seed: int) -> dict[str, Any]:
    """All steps as they were reported, and where the model ended."""
    here = race.runs / f"{side}-{rate:g}-{seed}"
    if side == "ours":
        write_recipe(here, our_recipe(race, here, start, rate, seed))
        lines = list(ask_ours(here, seconds=race.seconds))
        checkpoint = next(line["checkpoint"] for line in lines if "checkpoint" in line)
    else:
        checkpoint = str(here / "end")
        write_request(here, their_request(race, start, rate, seed) | {"save": checkpoint})
        lines = list(ask_peer(race.peer_python, "steps", here, seconds=race.seconds))
    return {"steps": [line for line in lines if "step" in line], "checkpoint": Path(checkpoint)}


def our_recipe(race: Race, here: Path, start: Path, rate: float, seed: int) -> Rl:
    """The quickstart's recipe, without its evaluations and without saving, as TRL saves nothing either."""
    recipe = rl_recipe(race.home, seed, start)
    return recipe.model_copy(
        update={
            "run": parts.Run(name="ours", root=str(here), seed=seed, device="cpu"),
            "steps": race.steps,
            "eval": None,
            "eval_every": 0,
            "loss": parts.Loss(clip_low=CLIP_LOW, clip_high=CLIP_HIGH),
            "reward": parts.Reward(grader=REWARD, workers=0),
            "optimizer": parts.Optimizer(lr=rate, warmup=WARMUP),
            "checkpoints": parts.Checkpoints(every=NEVER),
        }
    )


def their_request(race: Race, start: Path, rate: float, seed: int) -> dict[str, Any]:
    recipe = rl_recipe(race.home, seed, start)
    return {
        "checkpoint": str(start),
        "data": str(race.home / "data" / "train.jsonl"),
        "reward": REWARD,
        "device": "cpu",
        "dtype": "float32",
        "seed": seed,
        "steps": race.steps,
        "prompts_per_step": recipe.prompts_per_step,
        "samples_per_prompt": recipe.samples_per_prompt,
        "updates_per_step": recipe.updates_per_step,
        "micro_batches": 1,
        "max_new_tokens": MAX_NEW_TOKENS,
        "recompute": False,
        "settings": {
            "learning_rate": rate,
            "lr_scheduler_type": "constant_with_warmup",
            "warmup_steps": WARMUP,
            "epsilon": CLIP_LOW,
            "epsilon_high": CLIP_HIGH,
        },
    }


# Comparing.


def compare(runs: dict[str, dict[str, Any]], seed: int, race: Race) -> dict[str, Any]:
    """Seconds until each side's running mean is at TRL's final reward, ends, and steps by part."""
    curves = {side: curve(runs[side]["steps"]) for side in SIDES}
    goal = final(runs["theirs"]["steps"])
    reached = {side: time_to(goal, curves[side]) for side in SIDES}
    theirs, ours = reached["theirs"], reached["ours"]
    return {
        "seed": seed,
        "goal": goal,
        "seconds_to_goal": reached,
        "speed_up": theirs / ours if theirs and ours else None,
        "final": {side: final(runs[side]["steps"]) for side in SIDES},
        "held_out": {side: examine(runs[side]["checkpoint"], race, f"{side}-{seed}") for side in SIDES},
        "seconds_per_step": {
            side: median(step["seconds"]["step"] for step in runs[side]["steps"][1:]) for side in SIDES
        },
        "curves": curves,
    }


def curve(steps: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """(seconds, mean reward of the last WINDOW steps); the first points average what there is."""
    rewards = [step["reward"] for step in steps]
    return [
        (step["elapsed"], fmean(rewards[max(0, number + 1 - WINDOW) : number + 1]))
        for number, step in enumerate(steps)
    ]


def final(steps: Sequence[dict[str, Any]]) -> float:
    return curve(steps)[-1][1]


def time_to(goal: float, points: Sequence[tuple[float, float]]) -> float | None:
    """time_to(.5, [(1, .2), (2, .6)]) -> 2."""
    return next((seconds for seconds, reward in points if reward >= goal), None)


def examine(checkpoint: Path, race: Race, name: str) -> dict[str, float]:
    """Accuracy on held-out problems, both sides by the same evaluation."""
    results = evaluate_checkpoint(
        checkpoint,
        test_set(race.home),
        parts.Sampling(max_new_tokens=MAX_NEW_TOKENS),
        num_samples=8,
        output=race.runs / f"eval-{name}",
        device="cpu",
        dtype=DTYPE,
    )
    return headline(results)


def describe(lap: dict[str, Any]) -> str:
    columns = []
    for side in SIDES:
        reached = lap["seconds_to_goal"][side]
        columns.append(
            f"{name_of(side)} {'never' if reached is None else f'{reached:.1f} s'} to {lap['goal']:.3f}, ends at "
            f"{lap['final'][side]:.3f}, held out {lap['held_out'][side]['mean@8']:.3f}, "
            f"{lap['seconds_per_step'][side]:.2f} s a step"
        )
    times = "" if lap["speed_up"] is None else f"; {lap['speed_up']:.1f} times as fast"
    return f"  seed {lap['seed']}: " + "; ".join(columns) + times
