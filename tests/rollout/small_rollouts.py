"""A tiny engine, problems, and judges that know nothing of text."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from foresail.data.problems.prompts import PromptedProblem
from foresail.engine.engine import Engine
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Rollout, Sampling
from foresail.records import Group, Message, Problem, Sample, Status, Verdict
from foresail.rewards.group_rewards import right_or_wrong
from foresail.rollout.build import gather
from foresail.rollout.fleet import Fleet
from foresail.rollout.groups import GroupSpec
from foresail.rollout.native import NativeInstance
from foresail.rollout.native_drafting import DraftingInstance

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


def fleet_of(engine: Engine, max_length: int = 64, **settings: Any) -> Fleet:
    kind = DraftingInstance if settings.get("drafts") == "on" else NativeInstance
    return gather([kind("engine", engine)], Rollout(**settings), max_length=max_length)


def tiny_fleet(**options: Any) -> Fleet:
    return fleet_of(tiny_engine(**options))


def group_spec_of(num_samples: int = 4, **options: Any) -> GroupSpec:
    return GroupSpec(
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


class LateVerdict(Future):
    """A verdict that is there as soon as `ready` says so: at once, if nothing else is given."""

    def __init__(self, result: Callable[[], Verdict], ready: Callable[[], bool] = lambda: True) -> None:
        super().__init__()
        self.result, self.done = result, ready

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

    def __call__(self, problem: Problem, sample: Sample) -> LateVerdict:
        self.asked.append(problem.id)
        return LateVerdict(lambda: self.settle(problem))

    def settle(self, problem: Problem) -> Verdict:
        status = self.rule(problem.id)[self.settled[problem.id]]
        self.settled[problem.id] += 1
        return Verdict(status=status, score=float(status == "correct"))


def graded_group(statuses: list[Status]) -> Group:
    problem = some_problems(1)[0].problem
    judge = FakeJudge(lambda _: statuses)
    verdicts = tuple(judge.settle(problem) for _ in statuses)
    return Group(
        problem=problem, samples=(), verdicts=verdicts, rewards=right_or_wrong(problem, (), verdicts)
    )


def names(groups: tuple[Group, ...]) -> list[str]:
    return [group.problem.id for group in groups]
