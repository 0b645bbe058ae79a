r"""Multi-step arithmetic with checkable answers: the quickstart's data, small enough to learn in a minute.

"7 +5 *3 -4" starts at 7 and applies each operation to what it has, from left to right, modulo 10, as on a
clock with ten hours: 7 +5 is 2, *3 is 6, -4 is 2. A solution either writes each result after its operation,

    worked   <think>7 +5=2 *3=6 -4=2</think>\boxed{2}      four tokens a step, and each step is easy
    direct   \boxed{2}                                     all steps in the head, mostly wrong

so a model that knows both forms can discover that thinking pays. A problem's split follows from its text alone:
no test problem is ever trained on, whatever the seeds.
"""

from __future__ import annotations

import random
import zlib

from foresail.records import Message, Problem

SOURCE = "arithmetic"
SPLITS = ("train", "test")
TEST_SHARE = 10  # one expression in ten is for testing
FIRST = range(1, 10)
# *1 would teach nothing, and *0 or +0 would give the answer away or do nothing.
OPERATIONS = tuple(f"+{d}" for d in range(1, 10)) + tuple(f"-{d}" for d in range(1, 10))
OPERATIONS += tuple(f"*{d}" for d in range(2, 10))


def make_problems(
    count: int, *, seed: int, steps: tuple[int, int] = (3, 5), split: str = "train"
) -> list[Problem]:
    """`count` different problems of `steps[0]` to `steps[1]` operations; equal seeds give equal ones."""
    check_count(count, steps, split)
    rng = random.Random(f"arithmetic {seed}")
    expressions: dict[str, None] = {}
    while len(expressions) < count:
        length = rng.randint(*steps)
        expression = " ".join([str(rng.choice(FIRST)), *rng.choices(OPERATIONS, k=length)])
        if split_of(expression) == split:
            expressions[expression] = None
    return [to_problem(expression) for expression in expressions]


def to_problem(expression: str) -> Problem:
    return Problem(
        id=f"arithmetic:{expression}",
        prompt=(Message(role="user", content=expression),),
        answer=str(results(expression)[-1]),
        source=SOURCE,
        extra={"expression": expression},
    )


def worked(problem: Problem) -> str:
    r"""The answer reached in steps: "7 +5 *3" -> r"<think>7 +5=2 *3=6</think>\boxed{6}"."""
    expression = problem.extra["expression"]
    first, *operations = expression.split()
    steps = [
        f"{operation}={result}" for operation, result in zip(operations, results(expression), strict=True)
    ]
    return f"<think>{' '.join([first, *steps])}</think>{direct(problem)}"


def direct(problem: Problem) -> str:
    r"""The answer at once: "7 +5 *3" -> r"\boxed{6}"."""
    return rf"\boxed{{{problem.answer}}}"


def results(expression: str) -> list[int]:
    """The result after each operation: results("7 +5 *3 -4") -> [2, 6, 2]."""
    first, *operations = expression.split()
    value, values = int(first), []
    for sign, operand in ((operation[0], int(operation[1:])) for operation in operations):
        value = {"+": value + operand, "-": value - operand, "*": value * operand}[sign] % 10
        values.append(value)
    return values


def split_of(expression: str) -> str:
    # crc32 is the same on every machine, unlike hash().
    return "test" if zlib.crc32(expression.encode()) % TEST_SHARE == 0 else "train"


def check_count(count: int, steps: tuple[int, int], split: str) -> None:
    smallest, largest = steps
    if split not in SPLITS:
        raise ValueError(f"arithmetic: unknown split {split!r}; use one of {', '.join(SPLITS)}")
    if not 1 <= smallest <= largest:
        raise ValueError(f"arithmetic: steps {smallest}-{largest} is not a range from 1 up; try 3-5")
    if count < 1:
        raise ValueError(f"arithmetic: count {count} makes no problems; try 2000")
    # Lengths are picked evenly, so the shortest ones run out first; with half of them left, picking stays quick.
    largest_count = len(FIRST) * len(OPERATIONS) ** smallest // TEST_SHARE // 2 * (largest - smallest + 1)
    largest_count *= 1 if split == "test" else TEST_SHARE - 1
    if count > largest_count:
        raise ValueError(
            f"arithmetic: the {split} split has no {count} different problems of {smallest}-{largest} steps; "
            f"ask for at most {largest_count}, or for more steps"
        )
