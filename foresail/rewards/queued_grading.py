"""The base of gradings that work through a queue of jobs in their own thread: pools of processes or hosts."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from foresail.records import JudgeAway, Problem, RunStopped, Trajectory, Verdict
from foresail.rewards.grading import Grading, Pair, Part


class PoolClosed(RuntimeError):
    """The pool was closed before the verdict came."""


@dataclass
class GradingJob:
    """Responses to grade; without any the job only asks whether the grader can be loaded."""

    part: Part
    pairs: Sequence[Pair] = ()
    future: Future[Any] = field(default_factory=Future)  # of a verdict; of a list of them for a group
    deaths: int = 0  # of those that had it

    def settle(self, verdicts: Sequence[Verdict]) -> None:
        """Set the future once. A single failure for several responses goes to all of them."""
        if self.future.done():
            return
        if self.part == "group":
            self.future.set_result([*verdicts] * (len(self.pairs) // len(verdicts)))
        else:
            self.future.set_result(verdicts[0])


class QueuedGrading(Grading):
    """`submit` returns a future immediately; `close` ends all work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards all fields, and wakes the thread
        self._queue: deque[GradingJob] = deque()
        self._closed = False
        self._ended_by: BaseException | None = None  # the error that closed it, if one did

    def submit(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        return self._enqueue(GradingJob("whole", [(problem, trajectory)]))

    def submit_early(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        return self._enqueue(GradingJob("early", [(problem, trajectory)]))

    def submit_group(self, pairs: Sequence[Pair]) -> Future[list[Verdict]]:
        return self._enqueue(GradingJob("group", pairs))

    def _enqueue(self, job: GradingJob) -> Future[Any]:
        with self._lock:
            if self._closed:
                raise closed_by(self._ended_by) from self._ended_by
            self._queue.append(job)
            self._wake()
        return job.future

    @abstractmethod
    def _wake(self) -> None:
        """Tell the thread that there is work; the lock is held."""

    def _next_job(self) -> GradingJob | None:
        """The next job that was not cancelled."""
        while True:
            with self._lock:
                if not self._queue:
                    return None
                job = self._queue.popleft()
            if wants_verdict(job.future):
                return job

    def _put_back(self, job: GradingJob) -> None:
        with self._lock:
            self._queue.appendleft(job)


def closed_by(error: BaseException | None) -> Exception:
    """The error of later calls: why the pool was closed."""
    if error is None or isinstance(error, PoolClosed):
        return PoolClosed("the grading is closed; open a new one")
    if isinstance(error, RunStopped):  # its message tells the user what to do
        return (JudgeAway if isinstance(error, JudgeAway) else RunStopped)(str(error))
    return PoolClosed(f"the grading was ended by an error: {type(error).__name__}: {error}")


def wants_verdict(future: Future[Any]) -> bool:
    """Whether it was not cancelled; from now on it cannot be."""
    return future.running() or future.set_running_or_notify_cancel()
