r"""A real step of the flagship's word problems, rewarded by the maths grader and by a TRL-style batch function.

The first step of recipes/flagship/word-problems.toml, 512 samples: same seed and weights, hence the same tokens on
both sides, which is checked. Every step has a process of its own; the sides take turns. Besides the wall clock of
rollout and update (of the rollout alone with `--parts rollout`, the same step without its update), each tells

    rollout_cpu_s   CPU of the process during the rollout: engine, scheduler, rewards
    reward_cpu_ms   CPU of the loop's own thread inside rewards: what they take away from generation
    workers_cpu_s   CPU of the processes that grade, their start included

`reward_cost.py` runs it.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from functools import partial, wraps
from multiprocessing import get_context
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

RECIPE = Path(__file__).parents[2] / "recipes/flagship/word-problems.toml"
FUNCTION = r'''
import re

def stated_reward(completions, answer, **kwargs):
    """As people write it for TRL, where prompts are conversations."""
    texts = [completion[0]["content"] for completion in completions]
    matches = [re.search(r"[Aa]nswer is:?\s*\$?(-?[\d,]+)", text) for text in texts]
    found = [match.group(1).replace(",", "") if match else "" for match in matches]
    return [1.0 if guess == gold else 0.0 for guess, gold in zip(found, answer)]
'''
# Groups are not replaced, so both sides sample the same ones; small enough for a machine of 16 GB.
CHANGES = ("steps=1", "eval_every=0", "dynamic_sampling.enabled=false", "optimizer.warmup=0")
SMALL = ("engine.max_running=256", "micro_batch_tokens=2048")
FIGURES = ("rollout_s", "update_s", "rollout_cpu_s", "reward_cpu_ms", "workers_cpu_s")


def measure_steps(
    model: Path, folder: Path, rounds: int, changes: Sequence[str], *, update: bool
) -> dict[str, Any]:
    """{"sides": {"math": {"rollout_s": [241.0, 239.5], …, "right": 28}, "TRL batch": …}, "samples": 512}."""
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the command line does
    function = folder / "step_rewards.py"
    function.write_text(FUNCTION, encoding="utf-8")
    sides = {"math": (), "TRL batch": (f"reward.grader={function}:stated_reward",)}
    steps_of: dict[str, list[dict[str, Any]]] = {name: [] for name in sides}
    for number in range(rounds):
        for name, reward in sides.items():
            place = [f"model.path={model}", f"run.root={folder / 'runs'}"]
            words = [*place, *CHANGES, *SMALL, *changes, *reward]
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own:
                work = own.submit(measure_step, words, folder / "steps.log", update=update)
                steps_of[name].append(work.result())
            print(describe(f"{name}, round {number + 1}", steps_of[name][-1]), flush=True)
    every = [step for steps in steps_of.values() for step in steps]
    assert all(step["tokens"] == every[0]["tokens"] for step in every), "the sides sampled other tokens"
    return {
        "samples": every[0]["samples"],
        "update_tflop": every[0]["update_tflop"],
        "sides": {
            name: {figure: [step[figure] for step in steps] for figure in FIGURES}
            | {"right": steps[0]["right"]}
            for name, steps in steps_of.items()
        },
    }


def measure_step(words: Sequence[str], log: Path, *, update: bool) -> dict[str, Any]:
    """One step in this process, and what it took; what it prints goes to the log."""
    from foresail.recipe.reading.load import load_recipe
    from foresail.recipe.stages.rl import Rl
    from foresail.rewards.by_source import RewardsBySource
    from foresail.runlog.directory import RunDirectory
    from foresail.train.policy.policy_update import PolicyUpdate
    from foresail.train.rollouts import sample_groups as sample_groups
    from foresail.train.rollouts import start_check
    from foresail.train.stages import rl

    taken = {"rollout": 0.0, "reward": 0.0}
    start_check.self_test = lambda *_: {}  # minutes on a CPU, and no part of a step
    if not update:
        rl.update_policy = lambda *_, **__: PolicyUpdate(metrics={})
    sample_groups.sample_groups = timed(
        sample_groups.sample_groups, time.process_time, partial(add, taken, "rollout")
    )
    for name in ("judge", "judge_group", "reward"):
        spent = timed(getattr(RewardsBySource, name), time.thread_time, partial(add, taken, "reward"))
        setattr(RewardsBySource, name, spent)
    recipe = load_recipe(RECIPE, [*words])
    assert isinstance(recipe, Rl)
    shutil.rmtree(recipe.run.folder, ignore_errors=True)  # of the round before
    with log.open("a") as output, redirect_stdout(output):
        rl.run_rl(recipe)
    usage = getrusage(RUSAGE_CHILDREN)
    run = RunDirectory.open(recipe.run.folder)
    metrics, rows = run.read_metrics()[-1], list(run.read_rollouts(1))
    return {
        "rollout_s": round(metrics["timing_s/rollout"], 2),
        "update_s": round(metrics["timing_s/update"], 2),
        "rollout_cpu_s": round(taken["rollout"], 2),
        "reward_cpu_ms": round(1000 * taken["reward"], 2),
        "workers_cpu_s": round(usage.ru_utime + usage.ru_stime, 2),
        "update_tflop": round(metrics.get("perf/update_tflop", 0.0), 2),
        "samples": len(rows),
        "right": sum(row["status"] == "correct" for row in rows),
        "tokens": [zlib.crc32(json.dumps(row["ids"]).encode()) for row in rows],
    }


def timed(function: Callable[..., Any], clock: Callable[[], float], add: Callable[[float], None]) -> Any:
    @wraps(function)
    def call(*arguments: Any, **keywords: Any) -> Any:
        began = clock()
        try:
            return function(*arguments, **keywords)
        finally:
            add(clock() - began)

    return call


def add(sums: dict[str, float], name: str, seconds: float) -> None:
    sums[name] += seconds


def describe(name: str, step: dict[str, Any]) -> str:
    columns = "".join(f"{figure} {step[figure]:>9.2f}   " for figure in FIGURES)
    return f"{name:<24}{columns}right {step['right']}/{step['samples']}"
