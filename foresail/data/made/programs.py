"""Small programming tasks with tests of graded difficulty: filter, change, take and fold a list, told in words.

    Write a Python function solve(numbers) that takes a list of integers, keeps the even ones, squares each, and
    returns their sum.

A task has one to three pieces before the fold. A combination's split follows from its code alone, so no function of
the test split is ever trained on, though its pieces are.

A test's difficulty is measured by incomplete programs, which leave out one piece or take another fold: the more of
them pass, the easier it is (`rewards/programs/difficulty`). So a partly right program earns part of the points
under the schemes `strict` and `soft`.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from foresail.data.made.program_parts import NUMBERS, VOCABULARY, WORDS, Domain, Operation
from foresail.judge.programs.difficulty import difficulty_levels, pass_rates
from foresail.judge.programs.program import CallTest
from foresail.judge.programs.task import CodeTask, encode_task
from foresail.records import Message, Problem

SPLITS = ("train", "test")
TEST_SHARE = 5  # one combination in five is for testing
MAX_TASKS = {"train": 2000, "test": 500}  # about half of what there is, so picking stays quick
NUM_INPUTS, NUM_TESTS, NUM_LEVELS = 20, 8, 3
REQUEST = "Write a Python function solve({argument}) that {steps}."


@dataclass(frozen=True, kw_only=True)
class Task:
    """What the function does, in order; each of the first three may be missing, not all of them."""

    domain: Domain
    keep: Operation | None
    change: Operation | None
    take: Operation | None
    fold: Operation

    @property
    def words(self) -> str:
        pieces = [piece.words for piece in (self.keep, self.change, self.take) if piece is not None]
        steps = ", ".join([self.domain.opening, *pieces]) + f", and {self.fold.words}"
        return REQUEST.format(argument=self.domain.argument, steps=steps)

    @property
    def code(self) -> str:
        """The reference: one line for the list, one more for what is taken of it, one for the result."""
        if self.keep is None and self.change is None:
            values = self.domain.source
        else:
            change, keep = self.change or Operation("", "x"), f" if {self.keep.code}" if self.keep else ""
            values = f"[{change.code} for x in {self.domain.source}{keep}]"
        lines = [f"values = {values}", f"values = {self.take.code}" if self.take else ""]
        body = "".join(f"    {line}\n" for line in lines if line)
        return f"def solve({self.domain.argument}):\n{body}    return {self.fold.code}\n"

    def incomplete(self) -> list[Task]:
        """Partly right programs: without a piece, or with another fold."""
        left_out = [replace(self, keep=None), replace(self, change=None), replace(self, take=None)]
        others = [replace(self, fold=fold) for fold in self.domain.folds]
        return [task for task in (*left_out, *others) if task != self]


def make_problems(count: int, *, seed: int, split: str = "train") -> list[Problem]:
    """`count` different tasks; equal seeds give equal ones."""
    if split not in SPLITS:
        raise ValueError(f"programs: unknown split {split!r}; use one of {', '.join(SPLITS)}")
    if not 1 <= count <= MAX_TASKS[split]:
        raise ValueError(
            f"programs: the {split} split gives 1 to {MAX_TASKS[split]} tasks; {count} is not among them"
        )
    rng = random.Random(f"programs {seed}")
    problems: list[Problem] = []
    used_codes: set[str] = set()
    while len(problems) < count:
        task = pick_task(rng)
        if split_of(task) != split or task.code in used_codes:
            continue
        used_codes.add(task.code)
        if tests := find_tests(task):
            problems.append(to_problem(task, tests))
    return problems


def pick_task(rng: random.Random) -> Task:
    domain = rng.choice((NUMBERS, WORDS))
    chosen = rng.choice(((1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)))
    pieces = [
        rng.choice(options) if used else None
        for used, options in zip(chosen, (domain.keeps, domain.changes, domain.takes), strict=True)
    ]
    return Task(
        domain=domain, keep=pieces[0], change=pieces[1], take=pieces[2], fold=rng.choice(domain.folds)
    )


def split_of(task: Task) -> str:
    # crc32 is the same on every machine, unlike hash().
    return "test" if zlib.crc32(task.code.encode()) % TEST_SHARE == 0 else "train"


def to_problem(task: Task, tests: CodeTask) -> Problem:
    return Problem(
        id=f"programs:{zlib.crc32(task.code.encode()):08x}",
        prompt=(Message(role="user", content=task.words),),
        answer=task.code,
        source="programs",
        extra={**encode_task(tests), "solution": f"```python\n{task.code}```"},
    )


# Tests: inputs that tell the task from incomplete programs.


def find_tests(task: Task) -> CodeTask | None:
    """The shortest inputs, those that catch incomplete programs, and some more; None if a piece changes nothing."""
    rng = random.Random(f"tests of {task.code}")
    inputs = pick_inputs(rng, task.domain)
    solve, others = compile_task(task), [compile_task(other) for other in task.incomplete()]
    expected = [solve(arguments) for arguments in inputs]
    # one row an incomplete program: which inputs it gets right
    table = [
        [same(other(arguments), answer) for arguments, answer in zip(inputs, expected, strict=True)]
        for other in others
    ]
    if any(all(row) for row in table):
        return None
    chosen = [0, 1, 2]
    for row in table:
        if all(row[place] for place in chosen):
            chosen.append(row.index(False))
    chosen += [place for place in range(len(inputs)) if place not in chosen][
        : max(0, NUM_TESTS - len(chosen))
    ]
    rates = pass_rates([[[row[place] for place in chosen] for row in table]])
    calls = [CallTest(function="solve", arguments=(inputs[i],), expected=expected[i]) for i in chosen]
    return CodeTask(tests=tuple(calls), levels=tuple(difficulty_levels(rates, count=NUM_LEVELS)))


def pick_inputs(rng: random.Random, domain: Domain) -> list[Any]:
    """Inputs of zero to a dozen items."""
    sizes = [0, 1, 2, *(rng.randint(3, 12) for _ in range(NUM_INPUTS - 3))]
    if domain is NUMBERS:
        return [rng.choices(range(-15, 26), k=size) for size in sizes]
    return [" ".join(rng.choices(VOCABULARY, k=size)) for size in sizes]


def same(output: Any, expected: Any) -> bool:
    return type(output) is type(expected) and output == expected


def compile_task(task: Task) -> Callable[[Any], Any]:
    """The reference as a function; its text is made of our own pieces only."""
    names: dict[str, Any] = {}
    exec(task.code, names)
    return names["solve"]
