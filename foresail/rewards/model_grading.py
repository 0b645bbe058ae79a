"""Grading by a reward model, in a thread beside the rollout: all waiting answers are scored in one batch.

    grading = ModelGrading(settings, None, device="auto")    # the model's score is the reward
    grading = ModelGrading(settings, rules, device="auto")   # a term beside what `rules` say, or the other way

What it cannot read (too long, a token it does not have) is `ungradable`; a score that is no finite number, or an
error while computing it, is `crashed`. Neither is a score.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import torch

from foresail.recipe.tables.reward import MODEL, Reward
from foresail.records import FAILURES, Problem, Trajectory, Verdict
from foresail.rewards.grading import GraderTraits, Grading, Pair, applied, crashed, failure
from foresail.rewards.learned import ScoredIds, Scorer, Ungradable, open_scorer
from foresail.rewards.loading import in_one_line
from foresail.rewards.queued_grading import GradingJob, PoolClosed, QueuedGrading, wants_verdict
from foresail.rewards.terms import add_term

NOTHING = Verdict(status="scored", score=0.0)  # the verdict of no rules


class ModelGrading(QueuedGrading):
    """`rest` grades all of the reward that the model does not; it is closed with this."""

    def __init__(self, settings: Reward, rest: Grading | None, *, device: str) -> None:
        super().__init__()
        assert settings.model is not None, "the recipe's check asks for [reward.model]"
        self.settings, self.rest, self.device = settings, rest, device
        self.prints = None if rest is None else rest.prints
        self.labels = [term.label for term in settings.terms if term.grader == MODEL]
        self.is_main = settings.grader == MODEL
        self.has_rules = len(self.labels) < len(settings.terms)  # terms of `rest`
        self._scorer: Scorer | None = None
        self._waiting = threading.Event()
        self._thread: threading.Thread | None = None

    def check(self) -> None:
        """Load the model now."""
        assert self.settings.model is not None
        try:
            self._scorer = open_scorer(self.settings.model, device=self.device)
        except (OSError, ValueError) as error:
            raise ValueError(f"reward.model.path: {error}") from error
        if self.rest is not None:
            theirs = self.rest.traits
            main_in_group = theirs.main_in_group and not self.is_main
            self.traits = GraderTraits(
                group=theirs.group, main_in_group=main_in_group, required_columns=theirs.required_columns
            )

    @property
    def scorer(self) -> Scorer:
        assert self._scorer is not None, "it is open between `check` and `close`"
        return self._scorer

    def submit(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        return self._both(problem, trajectory, whole=True)

    def submit_early(self, problem: Problem, trajectory: Trajectory) -> Future[Verdict]:
        return self._both(problem, trajectory, whole=False)

    def submit_group(self, pairs: Sequence[Pair]) -> Future[list[Verdict]]:
        """Only `rest` may need the whole group; the model's score came early."""
        assert self.rest is not None, "nobody wants the group"
        return self.rest.submit_group(pairs)

    def _both(self, problem: Problem, trajectory: Trajectory, *, whole: bool) -> Future[Verdict]:
        learned = super().submit(problem, trajectory)
        if self.rest is None or not self.rest.traits.early:
            return joined([learned], lambda verdicts: self._join(verdicts[0], NOTHING, whole=whole))
        # terms that do not apply are no failure here, where the model's does
        judge = self.rest.submit_early if self.has_rules else self.rest.submit
        rules = judge(problem, trajectory)
        return joined([learned, rules], lambda verdicts: self._join(*verdicts, whole=whole))

    def _join(self, learned: Verdict, rules: Verdict, *, whole: bool) -> Verdict:
        """One verdict: a failure of either is the failure of both."""
        verdict = rules
        for label in self.labels:
            verdict = add_term(label, verdict, learned)
            if learned.status in FAILURES and verdict.status not in FAILURES:
                verdict = replace(
                    learned, detail=f"term {label}: {learned.detail}"
                )  # without its score there is no verdict
        if self.is_main and verdict.status not in FAILURES:
            if learned.status in FAILURES:
                return learned
            return replace(learned, terms=verdict.terms, extra=verdict.extra, metrics=verdict.metrics)
        return applied(verdict) if whole else verdict

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._waiting.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()
        for job in self._queue:
            if wants_verdict(job.future):
                job.future.set_exception(PoolClosed("the grading was closed before this verdict"))
        self._queue.clear()
        self._scorer = None  # frees its memory even if somebody still holds this object
        if self.rest is not None:
            self.rest.close()
        elif self.prints is not None:
            super().close()

    # The thread.

    def _wake(self) -> None:
        self._waiting.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="reward model", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        jobs: list[GradingJob] = []
        try:
            with own_stream(self.scorer.model.device):
                while not self._closed:
                    self._waiting.wait()
                    self._waiting.clear()
                    jobs = []
                    while not self._closed and (job := self._next_job()) is not None:
                        jobs.append(job)
                    self._grade(jobs)
        except BaseException as error:  # a bug of ours; else pending verdicts would never come
            with self._lock:
                self._closed, self._ended_by = True, error
            for job in (*jobs, *self._queue):
                if not job.future.done() and wants_verdict(job.future):
                    job.future.set_exception(error)

    def _grade(self, jobs: Sequence[GradingJob]) -> None:
        """All waiting jobs in one batch; if that fails one by one, so that one answer does not fail the others."""
        readable: list[tuple[GradingJob, ScoredIds]] = []
        for job in jobs:
            (pair,) = job.pairs
            try:
                readable.append((job, self.scorer.encode(*pair)))
            except Ungradable as reason:
                job.settle([Verdict(status="ungradable", score=0.0, detail=str(reason))])
            except Exception as error:
                self._settle_crash(job, error)
        if not readable:
            return
        try:
            scores = self.scorer.score([ids for _, ids in readable])
        except Exception as error:
            if len(readable) == 1:
                self._settle_crash(readable[0][0], error)
                return
            for job, _ in readable:
                self._grade([job])
            return
        for (job, _), score in zip(readable, scores, strict=True):
            job.settle([to_verdict(score)])

    def _settle_crash(self, job: GradingJob, error: Exception) -> None:
        verdicts, trace = crashed(error)
        self.log_first_failure(trace)
        job.settle([replace(verdicts[0], detail=f"the reward model failed: {in_one_line(error)}")])


def to_verdict(score: float) -> Verdict:
    if not math.isfinite(score):
        return failure(f"the reward model gave {score}, which is no score")
    return Verdict(status="scored", score=score, detail=f"scored {score:.4g} by the reward model")


def own_stream(device: torch.device) -> AbstractContextManager[Any]:
    """A CUDA stream of this thread's own, so that it and the engine do not wait for each other."""
    return torch.cuda.stream(torch.cuda.Stream(device)) if device.type == "cuda" else nullcontext()


def joined(parts: Sequence[Future[Verdict]], join: Callable[[list[Verdict]], Verdict]) -> Future[Verdict]:
    """A future that is done when all parts are, and cancels them."""
    joined_future: Future[Verdict] = Future()
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
