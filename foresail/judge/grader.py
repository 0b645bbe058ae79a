"""The grader of code problems: the response's program, run on the problem's tests, scored by their difficulty.

    grade = CodeGrader(scheme="strict")
    grade(problem, response) -> Verdict(status="wrong", score=0.5, detail="7 of 9 tests; first failure: test 3: …")

A program that passes everything is `correct`; any other is `wrong` with a score below 1. What the judge could
not decide is a failure and has no score, however many other tests passed.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from foresail.judge.judge import judge, shared_judge
from foresail.judge.programs.asserts import bound_names
from foresail.judge.programs.difficulty import Scheme, score
from foresail.judge.programs.fences import LANGUAGES, find_program
from foresail.judge.programs.program import CallTest, Limits, Program, StdinTest, Test
from foresail.judge.programs.rows import read_task
from foresail.judge.programs.syntax import parse
from foresail.judge.programs.task import CodeTask
from foresail.judge.sandbox.build import check_compiler
from foresail.records import FAILURES, Problem, Status, Verdict

_WORST_FIRST: tuple[Status, ...] = ("crashed", "ungradable", "timeout")


@dataclass(frozen=True, kw_only=True)
class CodeGrader:
    """`scheme` says what a program that passes some of the tests scores; see `difficulty.score`."""

    scheme: Scheme = "all"
    limits: Limits = field(default_factory=Limits)
    isolation: str | None = None  # None: the strongest that holds here

    def load(self) -> None:
        """Start the judge now: where no isolation holds, a run must not begin."""
        shared_judge(self.isolation)

    def __call__(self, problem: Problem, response: str) -> Verdict:
        try:
            prompt = problem.prompt[-1].content if problem.prompt else ""
            task = read_task({"prompt": prompt, "answer": problem.answer, **problem.extra})
        except ValueError as error:
            return Verdict(status="ungradable", score=0.0, detail=f"no tests: {error}")
        languages = LANGUAGES if takes_any_language(task) else ("python",)
        program = find_program(response, languages)
        if program is None:
            detail = f"no finished fenced block of {' or '.join(languages)} after the thinking"
            return Verdict(status="unparsable", score=0.0, detail=detail)
        try:
            if program.language == "cpp":
                check_compiler()
        except FileNotFoundError as error:  # what the machine lacks is not the response's fault
            return Verdict(status="ungradable", score=0.0, detail=str(error))
        verdicts = judge(
            add_prelude(program, task.prelude),
            call_methods(task.tests, program),
            self.limits,
            self.isolation,
            stop_at_first_failure=self.scheme == "all",  # no later test can change the score
        )
        return combine_verdicts(verdicts, task, self.scheme)


def takes_any_language(task: CodeTask) -> bool:
    """Calls and scripts are Python's; standard input and output are everyone's."""
    return all(isinstance(test, StdinTest) for test in task.tests)


def add_prelude(program: Program, prelude: str) -> Program:
    """Put the problem's imports and helpers before a Python program, but after its `from __future__` lines."""
    if not prelude or program.language != "python":
        return program
    future, rest = list[str](), list[str]()
    for line in program.source.split("\n"):
        (future if line.startswith("from __future__ import") else rest).append(line)
    return replace(program, source="\n".join([*future, prelude, "", *rest]))


def call_methods(tests: Sequence[Test], program: Program) -> list[Test]:
    """Call a bare function name as a method where the program has it in `class Solution` only.

    APPS and TACO give a name, and either form is right.
    """
    top, methods = defined_names(program)
    return [
        replace(test, function=f"Solution().{test.function}")
        if isinstance(test, CallTest) and test.function in methods - top
        else test
        for test in tests
    ]


def defined_names(program: Program) -> tuple[set[str], set[str]]:
    """What a Python program binds at its top, and the methods of its class Solution."""
    try:
        body = parse(program.source).body if program.language == "python" else []
    except ValueError:
        return set(), set()  # the judge will say so
    blocks = [s for s in body if isinstance(s, ast.FunctionDef | ast.ClassDef)]
    others = [s for s in body if not isinstance(s, ast.FunctionDef | ast.ClassDef)]
    top = {block.name for block in blocks} | bound_names(others)
    methods = {
        part.name
        for block in blocks
        if block.name == "Solution"
        for part in block.body
        if isinstance(part, ast.FunctionDef)
    }
    return top, methods


def combine_verdicts(verdicts: Sequence[Verdict], task: CodeTask, scheme: Scheme) -> Verdict:
    """One verdict from those of the tests, in their order; fewer than tests where judging stopped at a failure."""
    statuses = [verdict.status for verdict in verdicts]
    passed = [status == "correct" for status in statuses] + [False] * (len(task.tests) - len(verdicts))
    if all(passed):
        return Verdict(status="correct", score=1.0, detail=f"all of {len(passed)} tests")
    worst: Status = next((status for status in _WORST_FIRST if status in statuses), "wrong")
    number = statuses.index(worst)
    said = f"first failure: test {number + 1}: {verdicts[number].detail or worst}"
    counted = f"{sum(passed)} of {len(passed)} tests"
    return Verdict(
        status=worst,
        score=score(passed, task.levels, scheme) if worst == "wrong" else 0.0,
        detail=f"{counted}; {said}"[:200],
    )


assert set(_WORST_FIRST) == FAILURES
