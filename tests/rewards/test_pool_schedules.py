"""Workers that are played: whatever the order of answers, deaths and failed starts, each response has one verdict.

A schedule is a list of choices among what may happen next. All short ones are tried, and many long ones at random.
"""

from __future__ import annotations

import errno
import random
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from foresail.records import Problem, Verdict, single_turn
from foresail.rewards import pool as pools
from foresail.rewards import starts
from foresail.rewards.grading import Graded, GraderTraits
from foresail.rewards.pool import MAX_DEATHS, GradingPool
from foresail.rewards.queued_grading import GradingJob

PROBLEM = Problem(id="p", prompt=(), answer="7")
Event = Callable[[], object]


class PlayedWorker:
    """Both ends of a worker: `recv` and `send` are the pool's, the rest happens in the process."""

    def __init__(self, job: GradingJob) -> None:
        self.job: GradingJob | None = job
        self.loading, self.has_loaded, self.is_dead = True, False, False
        self.inbox: deque[Any] = deque()
        self.outbox: deque[Graded | GraderTraits] = deque()
        self.connection, self.process, self.log = self, SimpleNamespace(pid=0), None

    def send(self, item: Any) -> None:
        if self.is_dead:
            raise BrokenPipeError
        self.inbox.append(item)

    def recv(self) -> Graded | GraderTraits:
        if self.outbox:  # what was sent before a death still arrives
            return self.outbox.popleft()
        assert self.is_dead, "nobody would have woken the pool"
        raise EOFError

    def end(self) -> int:
        self.is_dead = True
        return -9

    def load(self) -> None:
        self.has_loaded = True
        self.outbox.append(GraderTraits())

    def grade(self) -> None:
        ((_, trajectory),) = self.inbox.popleft()[1]
        self.outbox.append(Graded([Verdict(status="correct", score=1.0, detail=trajectory.response)]))


def victim(worker: PlayedWorker) -> str:
    """The response that a worker grades, if any."""
    return worker.job.pairs[0][1].response if worker.job is not None and worker.has_loaded else ""


class Unthreaded(GradingPool):
    """The test is its thread."""

    def _wake(self) -> None:
        pass


class Play:
    """A pool and what may happen to it; `harm`: how many kills and failed starts there may be."""

    def __init__(self, *, workers: int, num_jobs: int, harm: int) -> None:
        self.harm, self.failing, self.killed = harm, 0, Counter[str]()
        self.pool = Unthreaded(print, workers=workers, seconds=60)
        responses = [f"response {number}" for number in range(num_jobs)]
        self.futures = {response: self.pool.submit(PROBLEM, single_turn(response)) for response in responses}

    def start(
        self, grader: bytes, job: GradingJob, prints: None, environment: dict[str, str]
    ) -> PlayedWorker:
        if self.failing:
            self.failing -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return PlayedWorker(job)

    @property
    def workers(self) -> list[PlayedWorker]:
        return [*self.pool._workers]  # type: ignore[list-item]

    def events(self) -> list[Event]:
        """All that may happen next."""
        return [self.pool._dispatch, *self.next_of_workers(), *(self.harms() if self.harm else ())]

    def next_of_workers(self) -> Iterator[Event]:
        for worker in self.workers:
            if worker.outbox or worker.is_dead:
                yield partial(self.pool._receive, worker)  # type: ignore[arg-type]
            if not worker.is_dead and not worker.has_loaded:
                yield worker.load
            if not worker.is_dead and worker.inbox:
                yield worker.grade

    def harms(self) -> Iterator[Event]:
        """A response loses fewer workers than make it a crash; those that idle or load are not counted."""
        yield self.fail_next_start
        for worker in self.workers:
            if not worker.is_dead and self.killed[victim(worker)] + 1 < MAX_DEATHS:
                yield partial(self.kill, worker)

    def kill(self, worker: PlayedWorker) -> None:
        self.harm -= 1
        self.killed[victim(worker)] += 1 if victim(worker) else 0
        worker.is_dead = True

    def fail_next_start(self) -> None:
        self.harm -= 1
        self.failing += 1

    def run(self, choices: Iterable[int]) -> None:
        for choice in choices:
            events = self.events()
            events[choice % len(events)]()
        self.harm = self.failing = 0
        while not all(future.done() for future in self.futures.values()):
            self.pool._dispatch()
            happens = [*self.next_of_workers()]
            assert happens, "nobody has the job that waits"
            for event in happens:
                event()
        assert not self.pool._queue and all(worker.job is None for worker in self.workers)
        for response, future in self.futures.items():
            assert future.result().detail == response


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """How many verdicts were offered to every job."""
    offered, settle = Counter[int](), GradingJob.settle

    def count(job: GradingJob, verdicts: Sequence[Verdict]) -> None:
        offered[id(job)] += 1
        settle(job, verdicts)

    monkeypatch.setattr(GradingJob, "settle", count)
    monkeypatch.setattr(starts, "FIRST_DELAY", 0.0)
    return offered


def play(
    choices: Iterable[int], monkeypatch: pytest.MonkeyPatch, settled: Counter[int], **sizes: int
) -> None:
    stage = Play(**sizes)
    monkeypatch.setattr(pools, "GradingWorker", stage.start)
    settled.clear()
    stage.run(choices)
    assert [*settled.values()] == [1] * sizes["num_jobs"]


def test_one_verdict_each_in_all_short_schedules(
    monkeypatch: pytest.MonkeyPatch, settled: Counter[int]
) -> None:
    """Two jobs, two workers, two kills: whatever the first five things are."""
    for choices in product(range(5), repeat=5):
        play((0, *choices), monkeypatch, settled, workers=2, num_jobs=2, harm=2)


def test_one_verdict_each_in_long_schedules(monkeypatch: pytest.MonkeyPatch, settled: Counter[int]) -> None:
    numbers = random.Random(35)
    for _ in range(800):
        choices = [numbers.randrange(1000) for _ in range(numbers.randrange(60))]
        sizes = {"workers": numbers.randint(1, 3), "num_jobs": numbers.randint(1, 5)}
        play(choices, monkeypatch, settled, **sizes, harm=starts.MAX_FAILED - 1)
