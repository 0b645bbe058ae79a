"""The grading a recipe asks for: at once in this process, or in a pool of others.

    with open_grading(Reward(grader="rewards.py:score")) as grading:
        verdict = grading.submit(problem, response).result()

`math` and `exact` take microseconds, less than sending a response elsewhere; code and functions of one's own may
hang or die, so they run where they can be killed.
"""

from __future__ import annotations

import os

from foresail.recipe.parts import Reward
from foresail.rewards.grader import find_grader
from foresail.rewards.grading import Grading, HereAndNow
from foresail.rewards.pool import GradingPool
from foresail.rewards.shared import SharedGrading

QUICK = ("math", "exact")


def open_grading(settings: Reward) -> Grading:
    """Ready when it returns; a ValueError where its grader cannot be loaded."""
    grader, workers = find_grader(settings), settings.workers
    if workers is None:
        workers = 0 if settings.grader in QUICK else count_cores()
    usual = 3600.0 if settings.grader == "code" else 60.0  # the tests of a program have limits of their own
    seconds = settings.time_limit or usual
    grading = GradingPool(grader, workers=workers, seconds=seconds) if workers else HereAndNow(grader)
    try:
        grading.check()
    except BaseException:
        grading.close()
        raise
    return SharedGrading(grading) if settings.grader == "code" else grading


def count_cores() -> int:
    """Those this process may use, which in a container are often fewer than there are."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1
