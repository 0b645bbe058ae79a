"""A grader that raises still gives a verdict: `crashed`, with the error in one line. A failure is never a score."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path
from typing import NamedTuple, Protocol

from foresail.records import Problem, Verdict

LONGEST_DETAIL = 500  # characters of an error that verdicts keep

log = logging.getLogger(__name__)


class Grader(Protocol):
    """Judges one response. A wrong answer is a verdict; a grader that breaks raises or says so by status.

    Graders travel to other processes by pickle, so each is a function of a module or a small record.
    """

    def __call__(self, problem: Problem, response: str) -> Verdict: ...


class Graded(NamedTuple):
    """A verdict, and the traceback of the error behind it if there was one."""

    verdict: Verdict
    trace: str = ""


def grade_guarded(grader: Grader, problem: Problem, response: str) -> Graded:
    """What the grader says, or that it crashed. `sys.exit()` inside a reward function is a crash like any other."""
    try:
        return Graded(grader(problem, response))
    except (Exception, SystemExit) as error:
        return crashed(error)


def crashed(error: BaseException) -> Graded:
    """crashed(KeyError("x")) -> a verdict with the detail "KeyError: 'x' (rewards.py:12)"."""
    words = "".join(traceback.format_exception_only(error)).strip().rpartition("\n")[2]
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    detail = words[:LONGEST_DETAIL] + place
    return Graded(failure(detail), "".join(traceback.format_exception(error)))


def failure(detail: str) -> Verdict:
    return Verdict(status="crashed", score=0.0, detail=detail)


def tell(trace: str) -> None:
    """Put a traceback where the user sees it. Callers do so once: the same error may come with every response."""
    log.error("a grader failed; further failures are only counted.\n%s", trace)
