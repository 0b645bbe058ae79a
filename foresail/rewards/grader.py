"""From a response to a reward: graders by the name a recipe gives them, and what their verdicts are worth."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from foresail.records import FAILURES, Problem, Verdict
from foresail.rewards import exact, math
from foresail.rewards.guard import Grader
from foresail.rewards.peers import PeerFunction
from foresail.rewards.shaping import format_penalty, language_penalty, overlong_penalty

if TYPE_CHECKING:  # grading processes import this module, and need no pydantic for it
    from foresail.recipe.parts import Reward


def grade_exact(problem: Problem, response: str) -> Verdict:
    return exact.grade(response, problem.answer)


def find_grader(settings: Reward) -> Grader:
    """find_grader(Reward(grader="rewards.py:score")) -> the function in that file, loaded when first called."""
    if settings.own_function:
        return PeerFunction(name=settings.grader, threshold=settings.threshold)
    if settings.grader == "code":
        from foresail.rewards.programs.grader import CodeGrader
        from foresail.rewards.programs.program import Limits

        code = settings.code
        limits = Limits(seconds=code.seconds, memory_mb=code.memory_mb)
        return CodeGrader(scheme=code.scheme, limits=limits, isolation=code.isolation)
    return grade_exact if settings.grader == "exact" else partial(math.grade_problem, accept=settings.accept)


def find_ballot(settings: Reward) -> Callable[[str], str | None]:
    """What a response votes for in maj@k: equal texts where the grader sees equal answers."""
    return partial(math.ballot, accept=settings.accept) if settings.grader == "math" else exact.ballot


def reward(
    verdict: Verdict,
    settings: Reward,
    *,
    prompt: str,
    response: str,
    num_tokens: int,
    limit: int,
) -> float | None:
    """Maps the score in [0, 1] onto [wrong, correct] and adds the terms for length, format and language.

    A right answer of 9 tokens is worth 1.0, a wrong one with Reward(wrong=-1) -1.0. The scores of a function of
    one's own may be any numbers; `wrong` and `correct` are then 0 and 1, which leaves them as they are.
    None for a failure, which is never a score: the caller drops the sample's group.
    """
    if verdict.status in FAILURES:
        return None
    earned = settings.wrong + verdict.score * (settings.correct - settings.wrong)
    return (
        earned
        + overlong_penalty(
            num_tokens, limit=limit, buffer=settings.overlong_buffer, factor=settings.overlong_factor
        )
        + format_penalty(response, weight=settings.format_weight)
        + language_penalty(prompt, response, weight=settings.language_weight)
    )
