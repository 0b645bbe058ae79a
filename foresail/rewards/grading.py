"""Where verdicts are made: at once in this process, or in a pool of others. Both have the same face.

    with open_grading(Reward(grader="rewards.py:score")) as grading:
        verdict = grading.submit(problem, response).result()

`math` and `exact` take microseconds, less than sending a response elsewhere; code and functions of one's own may
hang or die, so they run where they can be killed.
"""

from __future__ import annotations

import os
from concurrent.futures import Future
from types import TracebackType
from typing import Protocol, Self

from foresail.recipe.parts import Reward
from foresail.records import Problem, Verdict
from foresail.rewards.grader import find_grader
from foresail.rewards.guard import Grader, grade_guarded, tell
from foresail.rewards.pool import GradingPool
from foresail.rewards.shared import SharedGrading

QUICK = ("math", "exact")


class Grading(Protocol):
    """Takes responses, gives futures."""

    def submit(self, problem: Problem, response: str) -> Future[Verdict]: ...

    def check(self) -> None: ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def open_grading(settings: Reward) -> Grading:
    """Ready when it returns: a grader that cannot be loaded is a ValueError now, not a crash for every response."""
    grader, workers = find_grader(settings), settings.workers
    if workers is None:
        workers = 0 if settings.grader in QUICK else count_cores()
    usual = 3600.0 if settings.grader == "code" else 60.0  # the tests of a program have limits of their own
    seconds = settings.time_limit or usual
    grading: Grading = (
        GradingPool(grader, workers=workers, seconds=seconds) if workers else HereAndNow(grader)
    )
    if settings.grader == "code":
        grading = SharedGrading(grading)
    try:
        grading.check()
    except BaseException:
        grading.close()
        raise
    return grading


class HereAndNow:
    """Grades in the caller's thread: the future is done when it is given. There is no time limit."""

    def __init__(self, grader: Grader) -> None:
        self.grader, self.told = grader, False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> None:
        if (load := getattr(self.grader, "load", None)) is not None:
            load()

    def close(self) -> None:
        """Nothing was opened."""

    def submit(self, problem: Problem, response: str) -> Future[Verdict]:
        verdict, trace = grade_guarded(self.grader, problem, response)
        if trace and not self.told:
            self.told = True
            tell(trace)
        future: Future[Verdict] = Future()
        future.set_result(verdict)
        return future


def count_cores() -> int:
    """Those this process may use, which in a container are often fewer than there are."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
