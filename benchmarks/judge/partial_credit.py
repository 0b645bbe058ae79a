"""How many problems teach something under all-or-nothing, strict and soft rewards.

A group of samples with equal rewards has no advantage, so a problem nobody solves teaches nothing when only a
full pass pays. Here each problem gets a pool of real programs, run by the real judge: its gold solution, mutants
of it, versions that give up on larger inputs, and one that returns nothing. A solver of skill `s` writes the
gold program with probability `s`, otherwise, with even chances, nothing of use or one of the wrong programs.
Levels come from rollouts of all solvers, as several models would give them. The share of groups with unequal
rewards then follows exactly from the pool, without further sampling. The last line is JSON.

    python benchmarks/judge/partial_credit.py    # 300 LeetCode problems, and the contest ones
    python benchmarks/judge/partial_credit.py --quick
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

from code_sets import Solved, load, sample
from mutants import mutate

from foresail.judge.judge import Judge
from foresail.judge.programs.difficulty import Scheme, difficulty_levels, pass_rates, score
from foresail.judge.programs.program import Limits

SCHEMES: tuple[Scheme, ...] = ("all", "strict", "soft")
SKILLS = (0.0, 0.01, 0.05, 0.2, 0.5)
USELESS = 0.5  # share of a solver's wrong samples that pass nothing
LIMITS = Limits(seconds=1)
SIZES = (20, 60, 200)  # characters of input beyond which a limited program gives up

LIMIT_CALLS = """
def _limited(function):
    def call(*arguments, **keywords):
        if len(repr((arguments, keywords))) > {size}:
            raise MemoryError
        return function(*arguments, **keywords)
    return call
{target} = _limited({target})
"""
LIMIT_INPUT = """
import io, sys
_text = sys.stdin.read()
if len(_text) > {size}:
    sys.exit(1)
sys.stdin = io.StringIO(_text)
"""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Which tests each program passes; the wrong ones fail at least one."""

    tests: int
    wrong: list[list[bool]]

    def outcomes(self, skill: float) -> list[tuple[list[bool], float]]:
        """What a solver's sample may pass, with probabilities."""
        each = (1 - skill) * (1 - USELESS) / len(self.wrong)
        nothing = [False] * self.tests
        return [
            ([True] * self.tests, skill),
            (nothing, (1 - skill) * USELESS),
            *((row, each) for row in self.wrong),
        ]


def main() -> None:
    options = read_options()
    figures = {}
    with Judge(isolation=options.isolation, workers=options.workers) as judge:
        for name, count in (("leetcode", options.problems), ("contests", options.problems)):
            problems = [p for p in load(name) if p.language == "python" and len(p.task.tests) > 1]
            figures[name] = measure(name, sample(problems, count), judge, options)
    print(json.dumps({"samples": options.samples, "levels": options.levels, **figures}))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=300, help="problems per set, of more than one test")
    parser.add_argument("--mutants", type=int, default=12, help="mutants per problem")
    parser.add_argument("--tests", type=int, default=12, help="tests per problem, at most")
    parser.add_argument("--samples", type=int, default=8, help="samples in a group")
    parser.add_argument("--rollouts", type=int, default=32, help="samples per solver that levels come from")
    parser.add_argument("--levels", type=int, default=4)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--isolation", help="as for the judge; default: the strongest there is")
    parser.add_argument("--quick", action="store_true", help="20 problems per set")
    options = parser.parse_args()
    if options.quick:
        options.problems = 20
    return options


def measure(
    name: str, problems: Sequence[Solved], judge: Judge, options: argparse.Namespace
) -> dict[str, Any]:
    with ThreadPoolExecutor(options.workers) as threads:
        pools = [pool for pool in threads.map(lambda p: run_pool(judge, p, options), problems) if pool]
    partial = sum(any(any(row) for row in pool.wrong) for pool in pools)
    print(f"{name}: {len(pools)} problems, {partial} with a wrong program that passes some test")
    shares = {skill: signal_shares(pools, skill, options) for skill in SKILLS}
    for skill, share in shares.items():
        line = ", ".join(f"{scheme} {share[scheme]:.1%}" for scheme in SCHEMES)
        print(f"    a solver right {skill:.0%} of the time: groups with unequal rewards: {line}")
    return {"problems": len(pools), "with_partial_passes": partial, "signal": shares}


def run_pool(judge: Judge, problem: Solved, options: argparse.Namespace) -> Pool | None:
    """None for the few problems whose gold fails or whose wrong programs all pass."""
    tests = problem.task.tests[: options.tests]

    def passes(body: str) -> list[bool]:
        (first,) = judge.judge(problem.program(body), tests[:1], LIMITS)
        if "time" in first.detail:  # a loop without end: waiting for it on every test would take hours in all
            return [False] * len(tests)
        rest = judge.judge(problem.program(body), tests[1:], LIMITS)
        return [verdict.status == "correct" for verdict in (first, *rest)]

    if not all(passes(problem.body)):
        return None
    mutants = [mutant.source for mutant in mutate(problem.body)]
    random.Random(0).shuffle(mutants)
    bodies = [*mutants[: options.mutants], *(limit(problem, size) for size in SIZES)]
    wrong = [row for row in map(passes, bodies) if not all(row)]
    return Pool(tests=len(tests), wrong=wrong) if wrong else None


def limit(problem: Solved, size: int) -> str:
    """The gold program, giving up on inputs longer than `size`."""
    if problem.entry is None:
        return LIMIT_INPUT.format(size=size) + problem.body
    return problem.body + LIMIT_CALLS.format(size=size, target=problem.entry.replace("()", ""))


def signal_shares(pools: Sequence[Pool], skill: float, options: argparse.Namespace) -> dict[Scheme, float]:
    shares: dict[Scheme, list[float]] = {scheme: [] for scheme in SCHEMES}
    for number, pool in enumerate(pools):
        levels = find_levels(pool, options, seed=number)
        for scheme in SCHEMES:
            chance: dict[float, float] = defaultdict(float)
            for passed, probability in pool.outcomes(skill):
                chance[score(passed, levels, scheme)] += probability
            shares[scheme].append(1 - sum(p**options.samples for p in chance.values()))
    return {scheme: round(mean(values), 4) for scheme, values in shares.items()}


def find_levels(pool: Pool, options: argparse.Namespace, seed: int) -> list[int]:
    """From rollouts of every solver, so as a user would have them."""
    draw = random.Random(seed)
    models = []
    for skill in SKILLS:
        rows, weights = zip(*pool.outcomes(skill), strict=True)
        models.append(draw.choices(rows, weights, k=options.rollouts))
    return difficulty_levels(pass_rates(models), options.levels)


if __name__ == "__main__":
    main()
