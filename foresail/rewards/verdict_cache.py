"""A cache of verdicts: equal programs for one problem are run once in a run.

A trained model writes the same program for a problem again and again, and running it is slow.

Right and wrong verdicts are both cached. If only right ones were, a program that passes once in ten runs would be
run until it passes. Failures (crashed, timeout, ungradable) say nothing about a program and are not cached.
"""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial

from foresail.judge.programs.fences import find_program
from foresail.judge.programs.program import Program
from foresail.records import FAILURES, Problem, Trajectory, Verdict
from foresail.rewards.grading import Grading

KEPT = 4096  # programs

Key = tuple[int, Program]


@dataclass
class PendingVerdict:
    """A program that is being graded, and how many responses wait for it. `problem` keeps its id valid."""

    problem: Problem
    graded: Future[Verdict]
    waiting: int = 0

    @property
    def still_counts(self) -> bool:
        """Whether it is pending or has a verdict that is no failure."""
        if not self.graded.done():
            return True
        if self.graded.cancelled() or self.graded.exception() is not None:
            return False
        return self.graded.result().status not in FAILURES


class CachedGrading(Grading):
    """Wraps another grading: every response has its own future, but equal programs share one trial."""

    def __init__(self, grading: Grading) -> None:
        self.grading = grading
        self.lock = threading.Lock()
        self.trials: dict[Key, PendingVerdict] = {}

    def check(self) -> None:
        self.grading.check()

    def close(self) -> None:
        self.grading.close()

    def submit(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        program = find_program(trajectory.response)
        if program is None:  # nothing will be run
            return self.grading.submit(problem, trajectory)
        future: Future[Verdict] = Future()
        with self.lock:
            trial = self._find((id(problem), program), problem, trajectory)
            trial.waiting += 1
        future.add_done_callback(partial(self._leave, trial))
        trial.graded.add_done_callback(partial(pass_on, future))
        return future

    def _find(self, key: Key, problem: Problem, trajectory: Trajectory) -> PendingVerdict:
        trial = self.trials.get(key)
        if trial is None or not trial.still_counts:
            trial = self.trials[key] = PendingVerdict(problem, self.grading.submit(problem, trajectory))
            if len(self.trials) > KEPT:
                del self.trials[next(iter(self.trials))]
        return trial

    def _leave(self, trial: PendingVerdict, future: Future[Verdict]) -> None:
        """Remove a cancelled waiter; a trial without waiters is cancelled."""
        with self.lock:
            trial.waiting -= 1
            if future.cancelled() and not trial.waiting:
                trial.graded.cancel()


def pass_on(future: Future[Verdict], graded: Future[Verdict]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    error = graded.exception()
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(graded.result())
