"""Grading by one grader in a thread beside the rollout, joined with what all other parts of the reward say.

A reward model scores all waiting answers in one batch, a judge asks about them together; rules are quicker, and
grade meanwhile. A failure of either part is the failure of both.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

from foresail.recipe.tables.reward import Reward
from foresail.records import FAILURES, Problem, Trajectory, Verdict
from foresail.rewards.grading import NOTHING_YET, GraderTraits, Grading, Pair, applied
from foresail.rewards.queued_grading import GradingJob, PoolClosed, QueuedGrading, wants_verdict
from foresail.rewards.terms import add_term

NOTHING = Verdict(status="scored", score=0.0)  # the verdict of no rules


class SideGrading(QueuedGrading):
    """`grader` is its name in the recipe. `rest` grades all of the reward that it does not; it is closed with this.

    `needs_group`: its verdicts come with the group's last sample, else with each.
    """

    def __init__(
        self, settings: Reward, rest: Grading | None, *, grader: str, needs_group: bool = False
    ) -> None:
        super().__init__()
        self.settings, self.rest, self.grader, self.needs_group = settings, rest, grader, needs_group
        self.prints = None if rest is None else rest.prints
        self.labels = [term.label for term in settings.terms if term.grader == grader]
        self.is_main = settings.grader == grader
        self.has_rules = len(self.labels) < len(settings.terms)  # terms of `rest`
        self._waiting = threading.Event()
        self._thread: threading.Thread | None = None

    # For each grader.

    @abstractmethod
    def open(self) -> None:
        """Load what grades; a ValueError if that cannot be."""

    @abstractmethod
    def grade(self, jobs: Sequence[GradingJob]) -> None:
        """Settle all these jobs."""

    def working(self) -> AbstractContextManager[Any]:
        """Around the work of the thread."""
        return nullcontext()

    def shut(self) -> None:
        """Give back what was opened."""

    # The grading.

    def check(self) -> None:
        self.open()
        theirs = GraderTraits() if self.rest is None else self.rest.traits
        has_early = not self.needs_group or (self.rest is not None and theirs.early)
        self.traits = GraderTraits(
            early=has_early,
            group=self.needs_group or (self.rest is not None and theirs.group),
            main_in_group=self.needs_group if self.is_main else theirs.main_in_group,
            required_columns=theirs.required_columns,
        )

    def submit(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        if self.needs_group:
            raise ValueError("it compares the responses of a group, and there is one response")
        return self._both(problem, trajectory, whole=True)

    def submit_early(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        if not self.needs_group:
            return self._both(problem, trajectory, whole=False)
        if self.rest is None or not self.rest.traits.early:
            return NOTHING_YET
        return (self.rest.submit_early if self.rest.traits.group or self.has_rules else self.rest.submit)(
            problem, trajectory
        )

    def submit_group(self, pairs: Sequence[Pair]) -> Future[list[Verdict]]:
        """What was not said early: of `rest`, of this grader, or of both."""
        rest_waits = self.rest is not None and self.rest.traits.group
        if not self.needs_group:
            assert self.rest is not None and rest_waits, "nobody wants the group"
            return self.rest.submit_group(pairs)
        own = super().submit_group(pairs)
        nothing = [NOTHING] * len(pairs)
        if not rest_waits:
            return joined([own], lambda parts: self._join_all(parts[0], nothing))
        assert self.rest is not None
        return joined([own, self.rest.submit_group(pairs)], lambda parts: self._join_all(*parts))

    def _join_all(self, own: Sequence[Verdict], rules: Sequence[Verdict]) -> list[Verdict]:
        return [self._join(*both, whole=False) for both in zip(own, rules, strict=True)]

    def _both(self, problem: Problem, trajectory: Trajectory, *, whole: bool) -> Future[Verdict]:
        own = super().submit(problem, trajectory)
        if self.rest is None or not self.rest.traits.early:
            return joined([own], lambda verdicts: self._join(verdicts[0], NOTHING, whole=whole))
        # terms that do not apply are no failure here, where this grader's does
        judge = self.rest.submit_early if self.has_rules else self.rest.submit
        rules = judge(problem, trajectory)
        return joined([own, rules], lambda verdicts: self._join(*verdicts, whole=whole))

    def _join(self, own: Verdict, rules: Verdict, *, whole: bool) -> Verdict:
        """One verdict: a failure of either is the failure of both."""
        verdict = rules
        for label in self.labels:
            verdict = add_term(label, verdict, own)
            if own.status in FAILURES and verdict.status not in FAILURES:
                verdict = replace(
                    own, detail=f"term {label}: {own.detail}"
                )  # without its score there is no verdict
        if self.is_main and verdict.status not in FAILURES:
            if own.status in FAILURES:
                return own
            metrics = {**own.metrics, **verdict.metrics}
            return replace(own, terms=verdict.terms, extra=verdict.extra, metrics=metrics)
        return applied(verdict) if whole else verdict

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._waiting.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        for job in self._queue:
            if not job.future.done() and wants_verdict(job.future):  # an error may have settled it
                job.future.set_exception(PoolClosed("the grading was closed before this verdict"))
        self._queue.clear()
        self.shut()
        if self.rest is not None:
            self.rest.close()
        elif self.prints is not None:
            super().close()

    # The thread.

    def _wake(self) -> None:
        self._waiting.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"grader {self.grader}", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        jobs: list[GradingJob] = []
        try:
            with self.working():
                while not self._closed:
                    self._waiting.wait()
                    self._waiting.clear()
                    jobs = []
                    while not self._closed and (job := self._next_job()) is not None:
                        jobs.append(job)
                    if jobs:
                        self.grade(jobs)
        except BaseException as error:  # else pending verdicts would never come
            with self._lock:
                self._closed, self._ended_by = True, error
            for job in (*jobs, *self._queue):
                if not job.future.done() and wants_verdict(job.future):
                    job.future.set_exception(error)


def joined(parts: Sequence[Future[Any]], join: Callable[[list[Any]], Any]) -> Future[Any]:
    """A future that is done when all parts are, and cancels them."""
    joined_future: Future[Any] = Future()
    pending, lock = [len(parts)], threading.Lock()

    def finish(_: object) -> None:
        with lock:
            pending[0] -= 1
            if pending[0]:
                return
        if any(part.cancelled() for part in parts):
            joined_future.cancel()
        elif joined_future.set_running_or_notify_cancel():
            try:
                joined_future.set_result(join([part.result() for part in parts]))
            except BaseException as error:
                joined_future.set_exception(error)

    def pass_on(ended: Future[Verdict]) -> None:
        if ended.cancelled():
            for part in parts:
                part.cancel()

    joined_future.add_done_callback(pass_on)
    for part in parts:
        part.add_done_callback(finish)
    return joined_future
