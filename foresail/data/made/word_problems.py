"""Arithmetic word problems with whole-number answers: one operation, told in many ways.

"Maria picked 12 plums and Ken picked 9. How many plums did they pick together?" -> 21

Held out, whatever the seeds: the test split has its own templates, so none of its sentences is trained on, and its
own facts. A fact is two numbers with an operation and its inverse: 12 + 9, 9 + 12, 21 - 9 and 21 - 12 are one fact,
in one split. People and things are shared.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass

from foresail.data.made.story_templates import PEOPLE, TEMPLATES, THINGS
from foresail.records import Message, Problem

SPLITS = ("train", "test")
TEST_SHARE = 5  # one fact in five is for testing
MAX_PROBLEMS = 100_000  # problems of one split; there are far more, so picking stays quick
# The two numbers of a fact, by operation. No answer is above 200: the task is reading more than arithmetic.
JOINS = {"+": "+", "-": "+", "*": "*", "/": "*"}
RANGES = {"+": (range(2, 41), range(2, 41)), "*": (range(2, 13), range(2, 16))}


@dataclass(frozen=True, kw_only=True)
class Story:
    """A problem before it is written; `template` is a key of `TEMPLATES[operation][split]`."""

    operation: str
    split: str
    template: int
    a: int
    b: int
    people: tuple[str, str]
    things: str

    @property
    def answer(self) -> int:
        a, b = self.a, self.b
        return {"+": a + b, "-": a - b, "*": a * b, "/": a // b}[self.operation]

    @property
    def text(self) -> str:
        template = TEMPLATES[self.operation][self.split][self.template]
        p, q = self.people
        return template.format(p=p, q=q, a=self.a, b=self.b, t=self.things)


def make_problems(count: int, *, seed: int, split: str = "train") -> list[Problem]:
    """`count` different problems; equal seeds give equal ones."""
    if split not in SPLITS:
        raise ValueError(f"word-problems: unknown split {split!r}; use one of {', '.join(SPLITS)}")
    if not 1 <= count <= MAX_PROBLEMS:
        raise ValueError(f"word-problems: count {count} is not between 1 and {MAX_PROBLEMS}; try 5000")
    rng = random.Random(f"word problems {seed}")
    stories: dict[str, Story] = {}
    while len(stories) < count:
        story = pick_story(rng, split)
        if fact_split(story.operation, story.a, story.b) == split:
            stories[story.text] = story
    return [to_problem(story) for story in stories.values()]


def pick_story(rng: random.Random, split: str) -> Story:
    """A random story with one of the split's templates; its numbers may belong to the other split."""
    operation = rng.choice(tuple(TEMPLATES))
    first, second = (rng.choice(numbers) for numbers in RANGES[JOINS[operation]])
    a = {"+": first, "-": first + second, "*": first, "/": first * second}[operation]
    p, q = rng.sample(PEOPLE, 2)
    return Story(
        operation=operation,
        split=split,
        template=rng.randrange(len(TEMPLATES[operation][split])),
        a=a,
        b=second,
        people=(p, q),
        things=rng.choice(THINGS),
    )


def to_problem(story: Story) -> Problem:
    return Problem(
        id=f"word-problems:{zlib.crc32(story.text.encode()):08x}:{story.a}{story.operation}{story.b}",
        prompt=(Message(role="user", content=story.text),),
        answer=str(story.answer),
        source="word-problems",
        extra={"operation": story.operation, "solution": solution(story)},
    )


def solution(story: Story) -> str:
    """The answer in a line: "21 - 9 = 12. The answer is 12."."""
    return f"{story.a} {story.operation} {story.b} = {story.answer}. The answer is {story.answer}."


def fact_split(operation: str, a: int, b: int) -> str:
    """The split of the fact behind `a operation b`: 12 + 9, 9 + 12, 21 - 9 and 21 - 12 give the same."""
    first = {"+": a, "-": a - b, "*": a, "/": a // b}[operation]
    low, high = sorted((first, b))
    # crc32 is the same on every machine, unlike hash().
    fact = f"{low} {JOINS[operation]} {high}"
    return "test" if zlib.crc32(fact.encode()) % TEST_SHARE == 0 else "train"
