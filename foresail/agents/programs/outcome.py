"""Turns the result or error of a program into a sample to grade, a reward, or a failed verdict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from foresail.records import Sample, Verdict
from foresail.rewards.loading import in_one_line
from foresail.rewards.returned_rewards import to_verdict


class Hung(Exception):
    """A program did nothing for too long."""


@dataclass(frozen=True, kw_only=True)
class ProgramOutcome:
    """What a program returned or raised."""

    result: Any = None
    error: BaseException | None = None


def judge_outcome(outcome: ProgramOutcome, sample: Sample, *, cut: bool) -> tuple[Sample, Verdict | None]:
    """The sample for the graders, and its verdict if no grader is needed.

    Text is graded instead of the last response; for None the last response is graded; a number, or a dict with a
    score, is the reward. A program that raised after a limit `cut` its episode is graded by its last response.
    """
    result, error = outcome.result, outcome.error
    if not sample.num_response_tokens:
        return sample, failed(error or ValueError("the program ended and had asked the model nothing"))
    if cut and not isinstance(error, Hung):
        sample = replace(sample, finish="length")
        error = None
    if error is not None:
        return sample, failed(error)
    if result is None:
        return sample, None
    if isinstance(result, str):
        return replace(sample, outcome=result), None
    try:
        return sample, to_verdict(result, name="the program", threshold=1.0)
    except Exception as wrong:
        kind = type(result).__name__
        return sample, failed(TypeError(f"it returned a {kind}; return text, a number or None ({wrong})"))


def failed(error: BaseException) -> Verdict:
    """A program that failed says nothing about the model."""
    if isinstance(error, Hung):
        return Verdict(status="timeout", score=0.0, detail=f"program: {error}"[:500])
    return Verdict(status="crashed", score=0.0, detail=f"program: {in_one_line(error)}"[:500])
