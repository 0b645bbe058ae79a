"""What a step's rewards cost: 512 samples in 64 groups, a TRL-style batch function beside the maths grader.

No model: responses are made up in the form of GSM8K solutions, half of them right, and go the way a rollout's go:
each is handed over as it ends, the group when its last has ended. Rounds of all sides alternate; medians.

    python benchmarks/verifier/reward_cost.py
    python benchmarks/verifier/reward_cost.py --samples 2048 --rounds 20

`step` is a real step of a real model, with the same tokens for both, `rollout` the same without its update, which
takes most of the time on a CPU; see reward_step.py.

    python benchmarks/verifier/reward_cost.py --parts step --model checkpoints/SmolLM2-135M-Instruct --rounds 2
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from reward_step import measure_steps

from foresail.recipe.tables.reward import Reward, Term
from foresail.records import Message, Problem, Verdict, single_turn
from foresail.rewards.build import count_cores, open_grading
from foresail.rewards.grading import NOTHING_YET, Grading, Pair, group_verdicts

FUNCTIONS = r'''
import re

def answer_reward(completions, answer, **kwargs):
    """As people write it for TRL on GSM8K."""
    matches = [re.search(r"####\s*(-?[\d,.]+)", completion) for completion in completions]
    found = [match.group(1).replace(",", "") if match else "" for match in matches]
    return [1.0 if guess == gold else 0.0 for guess, gold in zip(found, answer)]

def brevity_reward(completions, **kwargs):
    lengths = [len(text) for text in completions]
    return [1 - length / max(lengths) for length in lengths]

def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return answer_reward([solution_str], [ground_truth])[0]
'''
THINGS = ("apples", "boxes", "dollars", "marbles", "pages", "tickets")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=512)
    parser.add_argument("--group", type=int, default=8, help="samples per problem")
    parser.add_argument("--rounds", type=int, help="default: 15, of steps 2")
    parser.add_argument("--parts", nargs="+", choices=("verdicts", "rollout", "step"), default=["verdicts"])
    parser.add_argument("--model", type=Path, default=Path("checkpoints/SmolLM2-135M-Instruct"))
    parser.add_argument("--rl", nargs="*", default=[], help="changes to the step's recipe: run.device=cuda …")
    options = parser.parse_args()
    report: dict[str, Any] = {"cores": count_cores()}
    with tempfile.TemporaryDirectory() as folder:
        if "verdicts" in options.parts:
            report["verdicts"] = measure_verdicts(
                Path(folder), options.samples, options.group, options.rounds or 15
            )
        for part in [part for part in options.parts if part != "verdicts"]:
            report[part] = measure_steps(
                options.model, Path(folder), options.rounds or 2, options.rl, update=part == "step"
            )
    print(json.dumps(report))


def measure_verdicts(folder: Path, samples: int, size: int, rounds: int) -> dict[str, Any]:
    groups = make_groups(samples // size, size)
    with ExitStack() as opened:
        sides = {
            name: opened.enter_context(open_grading(settings))
            for name, settings in make_sides(folder).items()
        }
        seconds: dict[str, list[float]] = {name: [] for name in sides}
        caller: dict[str, list[float]] = {name: [] for name in sides}
        right = {name: judge_step(grading, groups) for name, grading in sides.items()}  # also warms up
        for _ in range(rounds):
            for name, grading in sides.items():
                began, thread = time.perf_counter(), time.thread_time()
                judge_step(grading, groups)
                seconds[name].append(time.perf_counter() - began)
                caller[name].append(time.thread_time() - thread)
    assert len(set(right.values())) == 1, f"the sides disagree on what is right: {right}"
    report = {
        name: {
            "step_ms": round(1000 * statistics.median(seconds[name]), 2),
            "caller_cpu_ms": round(1000 * statistics.median(caller[name]), 2),
        }
        for name in sides
    }
    for name, figures in report.items():
        print(
            f"{name:<40}{figures['step_ms']:>9.2f} ms a step{figures['caller_cpu_ms']:>9.2f} ms of the caller's CPU"
        )
    return {"samples": samples, "group": size, "right": right["math, this process"], "sides": report}


def make_sides(folder: Path) -> dict[str, Reward]:
    path = folder / "cost_rewards.py"
    path.write_text(FUNCTIONS, encoding="utf-8")
    batch, single = f"{path}:answer_reward", f"{path}:compute_score"
    brevity = (Term(grader=f"{path}:brevity_reward", weight=0.1),)
    return {
        "math, this process": Reward(grader="math"),
        "TRL batch, this process": Reward(grader=batch, workers=0),
        "TRL batch, other processes": Reward(grader=batch),
        "TRL batch and a batched term, others": Reward(grader=batch, terms=brevity),
        "verl one by one, other processes": Reward(grader=single),
    }


def make_groups(count: int, size: int) -> list[list[Pair]]:
    """Problems with eight made-up solutions each; every second one is right."""
    numbers = random.Random(0)
    groups = []
    for index in range(count):
        gold = str(numbers.randrange(2, 2000))
        prompt = (Message(role="user", content=f"How many {numbers.choice(THINGS)} are there?"),)
        ids = {"prompt_ids": list(range(120)), "completion_ids": list(range(200))}
        problem = Problem(id=str(index), prompt=prompt, answer=gold, source="gsm8k", extra=ids)
        groups.append([(problem, single_turn(make_solution(numbers, gold, place))) for place in range(size)])
    return groups


def make_solution(numbers: random.Random, gold: str, place: int) -> str:
    lines = []
    for _ in range(numbers.randrange(3, 7)):
        a, b = numbers.randrange(2, 90), numbers.randrange(2, 90)
        lines.append(f"There are {a} * {b} = <<{a}*{b}={a * b}>>{a * b} {numbers.choice(THINGS)}.")
    stated = gold if place % 2 else str(int(gold) + numbers.randrange(1, 9))
    return "\n".join([*lines, f"#### {stated}"])


def judge_step(grading: Grading, groups: Sequence[Sequence[Pair]]) -> int:
    """As a rollout: single samples as they end, a group with its last; how many are right."""
    traits = grading.traits
    waiting: list[Future[Verdict]] = []
    for pairs in groups:
        submit = grading.submit_early if traits.group else grading.submit
        early = [submit(*pair) if traits.early else NOTHING_YET for pair in pairs]
        waiting += group_verdicts(grading, pairs, early)
    return sum(verdict.result().status == "correct" for verdict in waiting)


if __name__ == "__main__":
    main()
