"""A tiny engine, problems, and judges that know nothing of text."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

from foresail.data.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.model.hf import build_model
from foresail.recipe.parts import Rollout, Sampling
from foresail.recipe.shape import ModelShape
from foresail.records import FAILURES, Group, Message, Problem, Sample, Status, Verdict
from foresail.rollout.build import build_fleet
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import Draw

STOPS = (2, 5, 8)
SHAPE = ModelShape(
    vocab_size=12,
    hidden_size=16,
    intermediate_size=16,
    num_layers=1,
    num_heads=2,
    num_kv_heads=1,
    head_dim=8,
    max_context=64,
)
Rule = Callable[[str], list[Status]]


def tiny_engine(**options: Any) -> Engine:
    return Engine(build_model(SHAPE, seed=0), **{"num_pages": 400, "page_size": 4} | options)


def tiny_fleet(**options: Any) -> Fleet:
    return build_fleet(tiny_engine(**options), Rollout(), max_length=64)


def draw_settings(num_samples: int = 4, **options: Any) -> Draw:
    return Draw(
        **{
            "sampling": Sampling(max_new_tokens=12),
            "num_samples": num_samples,
            "stop_ids": STOPS,
            "seed": 0,
            "step": 1,
        }
        | options
    )


def some_problems(count: int) -> list[PromptedProblem]:
    numbers = random.Random(0)
    return [
        PromptedProblem(
            problem=Problem(id=f"p{n}", prompt=(Message(role="user", content=f"{n}"),), answer=""),
            ids=tuple(numbers.randrange(12) for _ in range(numbers.randint(2, 9))),
        )
        for n in range(count)
    ]


class Judged:
    """A verdict that is there as soon as `ready` says so: at once, if nothing else is given."""

    def __init__(
        self, result: Callable[[], tuple[Verdict, float | None]], ready: Callable[[], bool] = lambda: True
    ) -> None:
        self.result, self.done = result, ready
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        if self.done():
            call(self)


class FakeJudge:
    """Gives the samples of a problem the statuses of its rule, in the order in which they are settled.

    It remembers the order in which samples were handed over (`asked`).
    """

    def __init__(self, rule: Rule) -> None:
        self.rule, self.asked = rule, []
        self.settled: Counter[str] = Counter()

    def __call__(self, problem: Problem, sample: Sample) -> Judged:
        self.asked.append(problem.id)
        return Judged(lambda: self.settle(problem))

    def settle(self, problem: Problem) -> tuple[Verdict, float | None]:
        status = self.rule(problem.id)[self.settled[problem.id]]
        self.settled[problem.id] += 1
        score = float(status == "correct")
        return Verdict(status=status, score=score), None if status in FAILURES else score


def graded_group(statuses: list[Status]) -> Group:
    problem = some_problems(1)[0].problem
    judge = FakeJudge(lambda _: statuses)
    verdicts, rewards = zip(*(judge.settle(problem) for _ in statuses), strict=True)
    return Group(problem=problem, samples=(), verdicts=verdicts, rewards=rewards)


def names(groups: tuple[Group, ...]) -> list[str]:
    return [group.problem.id for group in groups]
