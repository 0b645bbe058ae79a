"""Graders by the name a recipe gives them, or as the functions that a program gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from foresail.data.problems.qa import accepted_answers
from foresail.maths import exact, short_answers
from foresail.maths import verdict as maths
from foresail.maths.extract import Accept
from foresail.recipe.reward_function import Function, name_of
from foresail.records import Problem, Trajectory, Verdict
from foresail.rewards.foreign_rewards import ForeignReward
from foresail.rewards.grading import Grader, load_grader
from foresail.rewards.returned_rewards import status_of
from foresail.rewards.structured import grade as structured
from foresail.rewards.terms import Terms

if TYPE_CHECKING:  # grading processes import this module, and need no pydantic for it
    from foresail.recipe.tables.reward import Reward


@dataclass(frozen=True, kw_only=True)
class TurnRewards:
    """The environment's own reward: the sum over the turns. Right from `threshold` on."""

    threshold: float | None

    def __call__(self, problem: Problem, trajectory: Trajectory) -> Verdict:
        rewards = [turn.reward for turn in trajectory.turns if turn.reward is not None]
        total = float(sum(rewards))
        if not math.isfinite(total):
            return Verdict(
                status="crashed", score=0.0, detail=f"the environment gave {rewards}, which is no reward"
            )
        detail = (
            f"the environment gave {total:g} in {len(rewards)} turns"
            if rewards
            else "the environment gave nothing"
        )
        return Verdict(status=status_of(total, self.threshold), score=total, detail=detail)


@dataclass(frozen=True)
class LastResponse:
    """A grader of final answers: of a trajectory it reads the last response alone."""

    grade: Callable[[Problem, str], Verdict]

    def load(self) -> None:
        load_grader(self.grade)

    def __call__(self, problem: Problem, trajectory: Trajectory) -> Verdict:
        return self.grade(problem, trajectory.response)


def grade_maths(problem: Problem, response: str, *, accept: Accept = "any") -> Verdict:
    return maths.grade(response, problem.answer, accept=accept)


def grade_exact(problem: Problem, response: str) -> Verdict:
    return exact.grade(response, problem.answer)


def grade_qa(problem: Problem, response: str) -> Verdict:
    return short_answers.grade(response, accepted_answers(problem))


def find_grader(settings: Reward) -> Grader:
    """find_grader(Reward(grader="rewards.py:score")) -> the function in that file, loaded when first called."""
    if not settings.terms and settings.grader != "none":
        return find_one(settings.grader, settings)
    return Terms(
        main=find_one(settings.grader, settings) if settings.grader != "none" else None,
        terms=tuple((term.label, find_one(term.grader, settings)) for term in settings.terms),
    )


def find_one(grader: Function, settings: Reward) -> Grader:
    """A built-in grader or a user's function, by name or as an object."""
    if not isinstance(grader, str):
        return ForeignReward(name=name_of(grader), threshold=settings.threshold, function=grader)
    if ":" in grader:
        return ForeignReward(name=grader, threshold=settings.threshold)
    if grader == "code":
        from foresail.judge.grader import CodeGrader
        from foresail.judge.programs.program import Limits

        code = settings.code
        limits = Limits(seconds=code.seconds, memory_mb=code.memory_mb)
        return LastResponse(CodeGrader(scheme=code.scheme, limits=limits, isolation=code.isolation))
    if grader == "environment":
        return TurnRewards(threshold=settings.threshold)
    if grader == "exact":
        return LastResponse(grade_exact)
    if grader == "qa":
        return LastResponse(grade_qa)
    if grader == "structured":
        return LastResponse(structured.grade)
    return LastResponse(partial(grade_maths, accept=settings.accept))


def find_ballot(settings: Reward) -> Callable[[str], str | None]:
    """The vote of a response in maj@k: equal texts for answers that the grader holds equal."""
    if settings.grader == "math":
        return partial(maths.ballot, accept=settings.accept)
    if settings.grader == "structured":
        return structured.ballot
    return short_answers.ballot if settings.grader == "qa" else exact.ballot
