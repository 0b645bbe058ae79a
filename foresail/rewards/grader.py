"""From a response to a reward: graders by the name a recipe gives them, and what their verdicts are worth."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from foresail.recipe.parts import Reward
from foresail.records import FAILURES, Problem, Verdict
from foresail.rewards import exact, math
from foresail.rewards.shaping import overlong_penalty


class Grader(Protocol):
    """Judges one response. A wrong answer is a verdict; a grader that breaks raises or says so by status."""

    def __call__(self, problem: Problem, response: str) -> Verdict: ...


def grade_math(problem: Problem, response: str) -> Verdict:
    return math.grade(response, problem.answer)


def grade_exact(problem: Problem, response: str) -> Verdict:
    return exact.grade(response, problem.answer)


GRADERS: dict[str, Grader] = {"math": grade_math, "exact": grade_exact}

# What a response votes for in maj@k, under the same name: equal texts where the grader sees equal answers.
BALLOTS: dict[str, Callable[[str], str | None]] = {"math": math.ballot, "exact": exact.ballot}


def reward(verdict: Verdict, settings: Reward, *, num_tokens: int, limit: int) -> float | None:
    """Maps the score in [0, 1] onto [wrong, correct] and adds the overlong penalty.

    reward(correct, Reward(wrong=-1), num_tokens=9, limit=100) -> 1.0; for a wrong answer -> -1.0.
    None for a failure, which is never a score: the caller drops the sample's group.
    """
    if verdict.status in FAILURES:
        return None
    earned = settings.wrong + verdict.score * (settings.correct - settings.wrong)
    return earned + overlong_penalty(
        num_tokens, limit=limit, buffer=settings.overlong_buffer, factor=settings.overlong_factor
    )
