"""The race of `vs_trl.py`: reward against wall-clock, both sides from one checkpoint (`track.py`).

Each side gets the best of the same learning rates, found on one seed; other seeds race. Problems, samples and
updates of a step are as many, and clip bounds, the reward function and the number of steps are the same. Beyond
that each does as it does: TRL with its defaults and a constant rate, Foresail with the recipe it ships. A step's
reward is the mean over all samples drawn in it, before any are filtered out: the policy's own rate on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

from load import NEVER, Request, write_recipe, write_request
from plots import draw_race
from process import SideFailed, ask_ours, ask_peer
from seconds import median_seconds
from speed import PARTS
from track import Track

from foresail.evaluation.evaluator import evaluate_checkpoint
from foresail.evaluation.results import summarise
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables import parts
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.reward import Reward

SIDES = ("theirs", "ours")
WINDOW = 5  # steps a reward is averaged over
CLIP_LOW, CLIP_HIGH = 0.2, 0.28
WARMUP = 2  # updates
HELD_OUT_SAMPLES = 8  # per problem, at temperature 1
HELD_OUT = f"mean@{HELD_OUT_SAMPLES}"


@dataclass(frozen=True, kw_only=True)
class Race:
    """`rates` are tried on seed 0, where there is a choice; `seeds` race."""

    peer_python: str
    track: Track
    runs: Path
    rates: tuple[float, ...]
    seeds: tuple[int, ...]
    steps: int
    seconds: float  # after which a process is killed


def measure_race(race: Race, output: Path) -> Iterator[dict[str, Any]]:
    """The laps so far, drawn, after every one."""
    print(f"\nReward against wall-clock: {race.steps} steps, means over {WINDOW} steps", flush=True)
    chosen = {side: choose_rate(side, race) for side in SIDES}
    laps = []
    for seed in race.seeds:
        runs = {side: run(side, race, chosen[side], seed=seed) for side in SIDES}
        laps.append(compare(runs, seed, race))
        print(describe(laps[-1]), flush=True)
        draw_race(laps, output / f"race-{race.track.device}.png", window=WINDOW)
        yield {
            "rates": chosen,
            "speed_up": median(lap["speed_up"] or 0.0 for lap in laps),
            "laps": laps,
        }


def choose_rate(side: str, race: Race) -> float:
    if len(race.rates) == 1:
        return race.rates[0]
    ends = {rate: final(run(side, race, rate, seed=0)["steps"]) for rate in race.rates}
    tried = ", ".join(f"{rate:g} {end:.3f}" for rate, end in ends.items())
    print(f"  {name_of(side):<9} final reward by learning rate: {tried}", flush=True)
    return max(ends, key=lambda rate: ends[rate])


def name_of(side: str) -> str:
    return {"theirs": "TRL", "ours": "Foresail"}[side]


# Running.


def run(side: str, race: Race, rate: float, *, seed: int) -> dict[str, Any]:
    """All steps as they were reported, and where the model ended; what there is where a side failed or was late."""
    here = race.runs / f"{side}-{rate:g}-{seed}"
    if side == "ours":
        write_recipe(here, our_recipe(race, here, rate, seed))
        replies = ask_ours(here, seconds=race.seconds)
    else:
        write_request(here, their_request(race, here, rate, seed))
        replies = ask_peer(race.peer_python, "steps", here, seconds=race.seconds)
    lines: list[dict[str, Any]] = []
    try:
        lines.extend(replies)
    except SideFailed as failure:
        print(f"  {failure}", flush=True)
    end = here / "end" if (here / "end").exists() else None
    return {
        "prompt_ids": next((line["prompt_ids"] for line in lines if "prompt_ids" in line), None),
        "steps": [line for line in lines if "step" in line],
        "checkpoint": next((line["checkpoint"] for line in lines if "checkpoint" in line), end),
    }


def our_recipe(race: Race, here: Path, rate: float, seed: int) -> Rl:
    """As it ships, but without evaluations and without saving, as TRL saves nothing either."""
    return race.track.recipe.model_copy(
        update={
            "run": parts.Run(name="ours", root=str(here), seed=seed, device=race.track.device),
            "steps": race.steps,
            "eval": None,
            "eval_every": 0,
            "loss": Loss(clip_low=CLIP_LOW, clip_high=CLIP_HIGH),
            "reward": Reward(grader=race.track.reward, workers=0),
            "optimizer": parts.Optimizer(lr=rate, warmup=WARMUP),
            "checkpoints": parts.Checkpoints(every=NEVER),
        }
    )


def their_request(race: Race, here: Path, rate: float, seed: int) -> Request:
    recipe = race.track.recipe
    return Request(
        checkpoint=str(race.track.start),
        data=str(race.track.problems),
        reward=race.track.reward,
        device=race.track.device,
        dtype="float32",
        seed=seed,
        steps=race.steps,
        prompts_per_step=recipe.prompts_per_step,
        samples_per_prompt=recipe.samples_per_prompt,
        updates_per_step=recipe.updates_per_step,
        micro_batches=race.track.micro_batches,
        max_new_tokens=recipe.sampling.max_new_tokens,
        recompute=False,
        settings={
            "learning_rate": rate,
            "lr_scheduler_type": "constant_with_warmup",
            "warmup_steps": WARMUP,
            "epsilon": CLIP_LOW,
            "epsilon_high": CLIP_HIGH,
        },
        save=str(here / "end"),
    )


# Comparing.


def compare(runs: dict[str, dict[str, Any]], seed: int, race: Race) -> dict[str, Any]:
    """Seconds until each side's running mean is at TRL's final reward, ends, and steps by part."""
    prompts = [runs[side]["prompt_ids"] for side in SIDES]
    assert None in prompts or prompts[0] == prompts[1], f"the sides read a prompt as {prompts}"
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
            side: median_seconds(runs[side]["steps"][1:], (*PARTS[side], "step")) for side in SIDES
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
    return curve(steps)[-1][1] if steps else math.nan


def time_to(goal: float, points: Sequence[tuple[float, float]]) -> float | None:
    """time_to(.5, [(1, .2), (2, .6)]) -> 2."""
    return next((seconds for seconds, reward in points if reward >= goal), None)


def examine(checkpoint: Path | None, race: Race, name: str) -> dict[str, float] | None:
    """Accuracy on held-out problems, both sides by the same evaluation; None where a side was stopped before."""
    if checkpoint is None:
        return None
    recipe = race.track.recipe
    results = evaluate_checkpoint(
        checkpoint,
        race.track.held_out,
        recipe.sampling,
        num_samples=HELD_OUT_SAMPLES,
        output=race.runs / f"eval-{name}",
        grader=recipe.reward.grader,
        device=race.track.device,
        dtype=recipe.model.dtype,
    )
    figures = summarise(results)
    return {name: figures[name]["value"] for name in ("greedy", HELD_OUT)}


def describe(lap: dict[str, Any]) -> str:
    columns = []
    for side in SIDES:
        reached, held_out = lap["seconds_to_goal"][side], lap["held_out"][side]
        columns.append(
            f"{name_of(side)} {'never' if reached is None else f'{reached:.1f} s'} to {lap['goal']:.3f}, ends at "
            f"{lap['final'][side]:.3f}, held out {'-' if held_out is None else f'{held_out[HELD_OUT]:.3f}'}, "
            f"{lap['seconds_per_step'][side].get('step', math.nan):.2f} s a step"
        )
    times = "" if lap["speed_up"] is None else f"; {lap['speed_up']:.1f} times as fast"
    return f"  seed {lap['seed']}: " + "; ".join(columns) + times
