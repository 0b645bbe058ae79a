"""The end of a program: what it returned is graded, is a reward, or is a failure, which is never a score."""

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

    said: Any = None
    error: BaseException | None = None


def judge_outcome(outcome: ProgramOutcome, sample: Sample, *, cut: bool) -> tuple[Sample, Verdict | None]:
    """The sample as graders shall see it, and its verdict where none of them is to be asked.

    Text is graded in the place of the last response; None leaves that to be graded; a number, or a dict with a
    score, is the reward. One that raised when the episode was `cut` by a limit is judged by its last response.
    """
    said, error = outcome.said, outcome.error
    if not sample.num_response_tokens:
        return sample, failed(error or ValueError("the program ended and had asked the model nothing"))
    if cut and not isinstance(error, Hung):
        sample = replace(sample, finish="length")
        error = None
    if error is not None:
        return sample, failed(error)
    if said is None:
        return sample, None
    if isinstance(said, str):
        return replace(sample, outcome=said), None
    try:
        return sample, to_verdict(said, name="the program", threshold=1.0)
    except Exception as wrong:
        kind = type(said).__name__
        return sample, failed(TypeError(f"it returned a {kind}; return text, a number or None ({wrong})"))


def failed(error: BaseException) -> Verdict:
    """A program that failed says nothing about the model."""
    if isinstance(error, Hung):
        return Verdict(status="timeout", score=0.0, detail=f"program: {error}"[:500])
    return Verdict(status="crashed", score=0.0, detail=f"program: {in_one_line(error)}"[:500])
