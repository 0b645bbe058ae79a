"""The code judge: how fast it is, whether it lets right programs through, and whether it stops wrong ones.

Speed: the same tests by the judge and by a fresh `python` process each, with the same comparison; rounds
alternate, and the median of each side counts. Gold: solutions that come with the data (CodeContests has none
here; see code_sets.py) must pass, and any that does not is listed with its reason. Mutants: one small mistake
in a gold program; a mutant that passes all tests may mean the same as the original, or the tests may be weak, so
survivors are counted and tried again in fresh processes. The last line is JSON.

    python benchmarks/judge/code_judge.py                              # all of it, fifteen minutes on two cores
    python benchmarks/judge/code_judge.py --quick                      # a glance
    python benchmarks/judge/code_judge.py --survivors survivors.txt    # what passed, to read
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "shared"))

from code_sets import Solved, load, sample
from mutants import OPERATORS, Mutant, mutate

from foresail.judge.judge import Judge
from foresail.judge.programs.compare import same_output
from foresail.judge.programs.program import AssertTest, CallTest, Limits, Program, StdinTest, Test
from foresail.judge.programs.task import write_literal
from foresail.records import Verdict

SETS = ("humaneval", "humaneval+", "mbpp", "mbpp+", "leetcode", "contests")
SLOW = 0.2  # seconds
MUTATED = ("humaneval", "mbpp", "leetcode", "contests")

# Gold programs that do not pass, and why that is no fault of the judge.
EXPLAINED = {
    "No module named": "needs a package beside the standard library; Judge(packages=…) can let it in",
    "leetcode word-ladder-ii": "answers may come in any order; this program's follows that of a set",
    "mbpp+ Mbpp/737": "returns a re.Match, which equals no other; EvalPlus itself makes an exception for it",
    "mbpp+ Mbpp/794": "returns a re.Match, as above",
    "mbpp+ Mbpp/255": "on one input returns a list too large for the output limit",
}

# Each job twice, so that what it imports is there, as in the judge's zygote; the second run counts.
RUNNER = """
import io, json, sys, time
jobs = json.load(open(sys.argv[1]))
out, total = sys.stdout, 0.0
for source, given in jobs:
    for counted in (False, True):
        sys.stdin, sys.stdout = io.TextIOWrapper(io.BytesIO(given.encode())), io.TextIOWrapper(io.BytesIO())
        start = time.perf_counter()
        try:
            exec(compile(source, "program.py", "exec"), {"__name__": "__main__"})
        except SystemExit:
            pass
        total += counted * (time.perf_counter() - start)
print(total, file=out)
"""

Pair = tuple[Program, Test]
Job = tuple[Program, Sequence[Test]]


def main() -> None:
    options = read_options()
    machine = {"machine": platform.machine(), "cores": os.cpu_count(), "python": platform.python_version()}
    print(", ".join(f"{name} {value}" for name, value in machine.items()))
    parts = {"trivial": measure_trivial, "speed": measure_speed, "gold": check_gold, "mutants": check_mutants}
    figures = {**machine, **{part: parts[part](options) for part in options.parts}}
    print(json.dumps(figures))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--parts", nargs="+", default=["trivial", "speed", "gold", "mutants"], help="those to run"
    )
    parser.add_argument("--tests", type=int, default=300, help="tests per set in the speed part")
    parser.add_argument("--rounds", type=int, default=5, help="timed rounds of each side")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="for gold and mutants")
    parser.add_argument("--problems", type=int, default=300, help="problems per set in the gold part")
    parser.add_argument("--all", action="store_true", help="every problem in the gold part")
    parser.add_argument("--inputs", type=int, default=20, help="inputs per problem of the Plus sets")
    parser.add_argument("--mutants", type=int, default=600, help="mutants per set")
    parser.add_argument("--survivors", help="file for the mutants that pass")
    parser.add_argument("--isolation", help="as for the judge; default: the strongest there is")
    parser.add_argument("--quick", action="store_true", help="little of everything")
    options = parser.parse_args()
    if options.quick:
        options.tests, options.rounds, options.problems, options.inputs, options.mutants = 60, 3, 30, 5, 60
    if options.all:
        options.problems = sys.maxsize
    return options


# Speed.


def measure_trivial(options: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of a test that computes nothing, by kind, and of a fresh process: what judging itself costs."""
    program, function = Program(source="print(int(input()) * 2)"), Program(source="def f(x): return x + 1")
    tests: dict[str, tuple[Program, Test]] = {
        "stdin": (program, StdinTest(input="2", output="4")),
        "call": (function, CallTest(function="f", arguments=(1,), expected=2)),
        "assert": (function, AssertTest(script="assert f(1) == 2")),
    }
    figures = {}
    with Judge(isolation=options.isolation) as judge, tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.py"
        path.write_text(program.source)
        ways: dict[str, Callable[[], object]] = {
            kind: partial(judge.judge, source, [test] * 20) for kind, (source, test) in tests.items()
        }
        ways["fresh python"] = partial(
            subprocess.run, [sys.executable, path], input=b"2", capture_output=True, check=True
        )
        for name, run in ways.items():
            times = []
            for _ in range(20):
                start = time.perf_counter()
                run()
                times.append((time.perf_counter() - start) * 1000 / (20 if name in tests else 1))
            figures[name] = round(median(times), 2)
    print(f"a trivial test, ms: {figures}")
    return figures


def measure_speed(options: argparse.Namespace) -> dict[str, Any]:
    figures = {}
    for name in ("humaneval", "mbpp", "leetcode", "contests"):
        pairs = draw_pairs(load(name), options.tests)
        quick = keep_quick(pairs, options)
        figures[name] = {"left_out": len(pairs) - len(quick), **compare_speed(name, quick, options)}
    return figures


def draw_pairs(problems: Sequence[Solved], count: int) -> list[Pair]:
    """Tests with their gold programs, problem by problem, until there are `count`; at most 20 of a problem."""
    drawn = random.Random(0).sample([p for p in problems if p.language == "python"], len(problems) // 2)
    return [(p.program(), test) for p in drawn for test in p.task.tests[:20]][:count]


def keep_quick(pairs: list[Pair], options: argparse.Namespace) -> list[Pair]:
    """Without programs that fail for want of a package, and those that compute for long: they time themselves."""
    quick = []
    with Judge(isolation=options.isolation) as judge:
        for pair in pairs:
            start = time.perf_counter()
            (right,) = by_judge(judge, [pair])
            if right and time.perf_counter() - start < SLOW:
                quick.append(pair)
    return quick


def compare_speed(name: str, pairs: list[Pair], options: argparse.Namespace) -> dict[str, Any]:
    """Tests per second of every side. All judge the same programs on the same tests and must agree."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Judge(isolation=options.isolation, workers=1) as one,
        Judge(isolation=options.isolation, workers=2) as two,
    ):
        sides: dict[str, Callable[[], list[bool]]] = {
            "judge, 1 worker": lambda: by_judge(one, pairs),
            "judge, 2 workers": lambda: by_judge(two, pairs),
            "python, 1 at a time": lambda: by_process(pairs, Path(folder), 1),
            "python, 2 at a time": lambda: by_process(pairs, Path(folder), 2),
        }
        rates: dict[str, list[float]] = {side: [] for side in sides}
        passed: dict[str, int] = {}
        own = run_in_one_process(pairs, Path(folder))
        for _ in range(options.rounds):
            for side, run in sides.items():
                start = time.perf_counter()
                passed[side] = sum(run())
                rates[side].append(len(pairs) / (time.perf_counter() - start))
    rate = {side: median(values) for side, values in rates.items()}
    judged, fresh = 1 / rate["judge, 1 worker"] - own, 1 / rate["python, 1 at a time"] - own
    figures = {
        "tests": len(pairs),
        "passed": passed,
        "tests_per_second": {side: round(value, 1) for side, value in rate.items()},
        "times_python": round(rate["judge, 1 worker"] / rate["python, 1 at a time"], 1),
        "own_ms": round(own * 1000, 2),
        "times_python_beside_its_own": round(fresh / judged, 1),
        "two_workers": round(rate["judge, 2 workers"] / rate["judge, 1 worker"], 2),
    }
    print(
        f"speed, {name}: {rate['judge, 1 worker']:.0f} tests/s by the judge, {rate['python, 1 at a time']:.0f} by "
        f"fresh processes: {figures['times_python']}x; without the {figures['own_ms']} ms that a test computes for "
        f"itself, {figures['times_python_beside_its_own']}x; two workers {figures['two_workers']}x one"
    )
    return figures


def by_judge(judge: Judge, pairs: Sequence[Pair]) -> list[bool]:
    """All tests of a program in one go, as a grader has them."""
    jobs = [(program, [test for _, test in group]) for program, group in groupby(pairs, lambda pair: pair[0])]
    return [verdict.status == "correct" for verdicts in judge_many(judge, jobs) for verdict in verdicts]


def judge_many(judge: Judge, jobs: Sequence[Job], **options: Any) -> list[list[Verdict]]:
    """On all workers at once; results in the order of the jobs."""
    with ThreadPoolExecutor(judge.workers) as threads:
        return list(threads.map(lambda job: judge.judge(*job, **options), jobs))


def by_process(pairs: Sequence[Pair], folder: Path, threads: int) -> list[bool]:
    """The plain way: a file and a `python` for each test."""

    def run(numbered: tuple[int, Pair]) -> bool:
        number, (program, test) = numbered
        path = folder / f"program{number}.py"
        path.write_text(program.source + asking(test))
        stdin = test.input if isinstance(test, StdinTest) else ""
        ended = subprocess.run([sys.executable, path], input=stdin.encode(), capture_output=True, timeout=60)
        printed = isinstance(test, StdinTest)
        return ended.returncode == 0 and (
            not printed or same_output(ended.stdout, test.output, test.comparison)  # type: ignore[union-attr]
        )

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(run, enumerate(pairs)))


def run_in_one_process(pairs: Sequence[Pair], folder: Path) -> float:
    """Seconds a test takes for itself: program and test compiled and run in one warm process, nothing judged."""
    jobs = [
        (program.source + asking(test), test.input if isinstance(test, StdinTest) else "")
        for program, test in pairs
    ]
    (folder / "jobs.json").write_text(json.dumps(jobs))
    (folder / "runner.py").write_text(RUNNER)
    ended = subprocess.run(
        [sys.executable, folder / "runner.py", folder / "jobs.json"], capture_output=True, check=True
    )
    return float(ended.stdout) / len(pairs)


def asking(test: Test) -> str:
    """What stands after the program so that its exit status is the verdict."""
    if isinstance(test, StdinTest):
        return ""
    if isinstance(test, CallTest):
        arguments, keywords = write_literal(test.arguments), write_literal(test.keywords)
        return f"\nassert {test.function}(*{arguments}, **{keywords}) == {write_literal(test.expected)}\n"
    return f"\n{test.script}\n"


# Gold.


def check_gold(options: argparse.Namespace) -> dict[str, Any]:
    figures = {}
    with Judge(isolation=options.isolation, workers=options.workers) as judge:
        for name in SETS:
            problems = [thin(p, options.inputs) for p in sample(load(name), options.problems)]
            start = time.perf_counter()
            reasons = find_reasons(judge, [(p.program(), p.task.tests) for p in problems], Limits())
            failed = {p.name: reason for p, reason in zip(problems, reasons, strict=True) if reason}
            tests = sum(len(problem.task.tests) for problem in problems)
            seconds = time.perf_counter() - start
            passed = f"{len(problems) - len(failed)} of {len(problems)}"
            print(f"gold, {name}: {passed} pass, {tests} tests, {seconds:.0f} s")
            for problem, reason in failed.items():
                print(f"    {problem}: {explain(problem, reason)}")
            unexplained = {name: reason for name, reason in failed.items() if explain(name, reason) == reason}
            figures[name] = {
                "problems": len(problems),
                "tests": tests,
                "failed": len(failed),
                "unexplained": unexplained,
            }
    return figures


def explain(problem: str, reason: str) -> str:
    """Why a gold program fails, where that is known; else what the judge said."""
    return next((why for sign, why in EXPLAINED.items() if sign == problem or sign in reason), reason)


def thin(problem: Solved, inputs: int) -> Solved:
    """The Plus sets have up to a thousand inputs a problem; keep so many, evenly spread."""
    tests = problem.task.tests
    if not problem.name.partition(" ")[0].endswith("+") or len(tests) <= inputs:
        return problem
    chosen = tuple(tests[place * len(tests) // inputs] for place in range(inputs))
    return replace(problem, task=replace(problem.task, tests=chosen))


def find_reasons(judge: Judge, jobs: Sequence[Job], limits: Limits) -> list[str | None]:
    """For each program the first test that does not pass, with its message; None when all pass."""
    reasons: list[str | None] = []
    for verdicts in judge_many(judge, jobs, limits=limits, stop_at_first_failure=True):
        last = verdicts[-1]
        right = last.status == "correct"
        reasons.append(None if right else f"test {len(verdicts)}: {last.status}: {last.detail}"[:200])
    return reasons


# Mutants.


def check_mutants(options: argparse.Namespace) -> dict[str, Any]:
    figures = {}
    for name in MUTATED:
        chosen = draw_mutants(name, options.mutants)
        jobs = [(problem.program(mutant.source), problem.task.tests) for problem, mutant in chosen]
        with Judge(isolation=options.isolation, workers=options.workers) as judge:
            reasons = find_reasons(judge, jobs, Limits(seconds=3))
        made = Counter(mutant.operator for _, mutant in chosen)
        alive = [pair for pair, reason in zip(chosen, reasons, strict=True) if reason is None]
        left = Counter(mutant.operator for _, mutant in alive)
        broken = sum("crashed" in reason or "ungradable" in reason for reason in reasons if reason)
        killed = {op: f"{made[op] - left[op]} of {made[op]}" for op in OPERATORS if made[op]}
        agreed = sum(passes_plainly(problem, mutant) for problem, mutant in alive)
        print(
            f"mutants, {name}: {len(chosen) - len(alive)} of {len(chosen)} fail; of the {len(alive)} survivors "
            f"{agreed} pass in fresh python processes too; {killed}"
        )
        figures[name] = {
            "mutants": len(chosen),
            "killed": len(chosen) - len(alive),
            "survivors": len(alive),
            "survivors_that_pass_in_fresh_processes": agreed,
            "judge_failures": broken,
            "killed_by_operator": killed,
        }
        if options.survivors:
            write_survivors(Path(options.survivors), alive)
    return figures


def draw_mutants(name: str, count: int) -> list[tuple[Solved, Mutant]]:
    """So many, drawn over the whole set: first a problem, then one of its mutants."""
    draw = random.Random(0)
    problems = [problem for problem in load(name) if problem.language == "python"]
    draw.shuffle(problems)
    pools = [(problem, shuffled(draw, mutate(problem.body))) for problem in problems[:count]]
    chosen = [
        (problem, mutants[turn]) for turn in range(count) for problem, mutants in pools if turn < len(mutants)
    ]
    return chosen[:count]


def shuffled(draw: random.Random, mutants: list[Mutant]) -> list[Mutant]:
    return draw.sample(mutants, len(mutants))


def passes_plainly(problem: Solved, mutant: Mutant) -> bool:
    """Whether the tests themselves let a mutant through, or only the judge does."""
    with tempfile.TemporaryDirectory() as folder:
        program = problem.program(mutant.source)
        return all(by_process([(program, test) for test in problem.task.tests], Path(folder), 2))


def write_survivors(path: Path, alive: Sequence[tuple[Solved, Mutant]]) -> None:
    with path.open("a") as file:
        for problem, mutant in alive:
            file.write(
                f"##### {problem.name}: {mutant.operator}\n{problem.body}\n----- became\n{mutant.source}\n\n"
            )


if __name__ == "__main__":
    main()
