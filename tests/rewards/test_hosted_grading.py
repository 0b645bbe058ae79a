"""Grading on hosts that are played: each response has its verdict whichever hosts die, hang or never come."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.actors import ActorLost, ActorSilent, Message
from foresail.records import Problem, RunStopped, Verdict, single_turn
from foresail.rewards import hosted_grading
from foresail.rewards.grading import GraderTraits
from foresail.rewards.hosted_grading import MAX_DEATHS, HostedGrading, Task
from foresail.rewards.queued_grading import PoolClosed

PATIENCE = 300.0
PROBLEM = Problem(id="p", prompt=(), answer="7")
RIGHT = Verdict(status="correct", score=1.0)


class PlayedHost:
    """Grades when it is told to, in any order; verdicts repeat the response."""

    def __init__(self, number: int, *, is_ready: bool = True) -> None:
        self.name, self.lock = f"grader host {number}", threading.Lock()
        self.tasks: list[Task] = []
        self.messages: list[Message] = []
        self.news: Future[Any] = Future()
        self.lost: ActorLost | None = None
        self.is_closed = False
        if is_ready:
            self.say("ready", GraderTraits())

    def say(self, kind: str, content: Any) -> None:
        with self.lock:
            self.messages.append((kind, content))
            self._wake()

    def _wake(self) -> None:
        if not self.news.done():
            self.news.set_result(None)

    def die(self, lost: ActorLost | None = None) -> None:
        with self.lock:
            self.lost = lost or ActorLost("killed")
            self._wake()

    def grade(self, index: int) -> None:
        with self.lock:
            number, _, pairs = self.tasks.pop(index)
        self.say("verdicts", (number, [replace(RIGHT, detail=each.response) for _, each in pairs]))

    # What the grading calls.

    def send(self, tasks: Sequence[Task]) -> None:
        with self.lock:
            if self.lost is not None:
                raise self.lost
            self.tasks += tasks

    def receive(self) -> list[Message]:
        with self.lock:
            if self.lost is not None:
                raise self.lost
            self.news, found, self.messages = Future(), self.messages, []
            return found

    def close(self) -> None:
        self.is_closed = True


class Stage:
    """All hosts that were ever started."""

    def __init__(self) -> None:
        self.hosts: list[PlayedHost] = []
        self.starts_ready = True

    def start(self, number: int) -> PlayedHost:
        self.hosts.append(PlayedHost(number, is_ready=self.starts_ready))
        return self.hosts[-1]

    @property
    def alive(self) -> list[PlayedHost]:
        return [host for host in self.hosts if host.lost is None]


@pytest.fixture(autouse=True)
def quietly() -> Iterator[None]:
    logging.getLogger(hosted_grading.__name__).setLevel(logging.CRITICAL)
    yield
    logging.getLogger(hosted_grading.__name__).setLevel(logging.NOTSET)


def until(seen: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < deadline
        time.sleep(0.0005)


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 40), st.integers(0, 3), st.integers(0, 999))
def test_every_response_has_its_own_verdict_whichever_hosts_die(
    hosts: int, workers: int, responses: int, deaths: int, seed: int
) -> None:
    stage, numbers = Stage(), random.Random(seed)
    with HostedGrading(stage.start, num_hosts=hosts, workers=workers) as grading:
        grading.check()
        futures = [grading.submit(PROBLEM, single_turn(str(number))) for number in range(responses)]
        dropped = {number for number, future in enumerate(futures) if number % 5 == 4 and future.cancel()}
        deadline = time.monotonic() + PATIENCE
        while not all(future.done() for future in futures):
            assert time.monotonic() < deadline
            if deaths and stage.alive and numbers.random() < 0.2:
                numbers.choice(stage.alive).die()
                deaths -= 1
            busy = [host for host in stage.alive if host.tasks]
            if busy:
                host = numbers.choice(busy)
                assert len(host.tasks) <= 2 * workers, "the others wait where they can be cancelled"
                host.grade(numbers.randrange(len(host.tasks)))
            else:
                time.sleep(0.0005)
        for number, future in enumerate(futures):
            if number not in dropped:
                assert future.result().detail == str(number)
    assert all(host.is_closed for host in stage.hosts)


def test_a_group_goes_to_one_host_and_comes_back_in_its_order() -> None:
    stage = Stage()
    with HostedGrading(stage.start, num_hosts=2, workers=1) as grading:
        future = grading.submit_group([(PROBLEM, single_turn(word)) for word in ("a", "b", "c")])
        until(lambda: any(host.tasks for host in stage.hosts))
        next(host for host in stage.hosts if host.tasks).grade(0)
        assert [verdict.detail for verdict in future.result(PATIENCE)] == ["a", "b", "c"]


def test_a_response_under_which_hosts_die_again_and_again_is_a_failure_at_last() -> None:
    stage = Stage()
    with HostedGrading(stage.start, num_hosts=2, workers=1) as grading:
        killer, others = grading.submit(PROBLEM, single_turn("x")), 0
        while not killer.done():
            busy = [host for host in stage.alive if host.tasks]
            for host in busy:
                host.die()
                others += 1
        assert killer.result().status == "crashed" and others == MAX_DEATHS
        fine = grading.submit(PROBLEM, single_turn("y"))
        until(lambda: any(host.tasks for host in stage.alive))
        next(host for host in stage.alive if host.tasks).grade(0)
        assert fine.result(PATIENCE).detail == "y"


def test_a_place_that_stays_empty_is_given_up_and_without_any_the_run_stops() -> None:
    stage = Stage()
    with HostedGrading(stage.start, num_hosts=2, workers=1) as grading:
        grading.check()
        stage.starts_ready = False  # no host has room from now on
        for host in stage.alive:
            host.die()
        until(lambda: len(stage.hosts) == 4)
        future = grading.submit(PROBLEM, single_turn("x"))
        one, other = stage.alive
        one.die(ActorSilent("no room"))
        until(lambda: one.is_closed)
        other.say("ready", GraderTraits())
        until(lambda: other.tasks)
        other.grade(0)
        assert future.result(PATIENCE).detail == "x" and len(stage.hosts) == 4, "one is enough"
        future = grading.submit(PROBLEM, single_turn("y"))
        other.die()
        until(lambda: len(stage.hosts) == 5)
        stage.hosts[4].die(ActorSilent("no room"))
        with pytest.raises(RunStopped, match=r"no host of the cluster grades any more.*grader_hosts=0"):
            future.result(PATIENCE)
        with pytest.raises(RunStopped, match=r"grades any more \(killed\)"):
            grading.submit(PROBLEM, single_turn("z"))


def test_a_host_that_cannot_be_started_is_tried_again_and_the_cause_is_told() -> None:
    stage, failures = Stage(), [OSError("Too many open files")] * 2

    def start(number: int) -> PlayedHost:
        if failures:
            raise failures.pop(0)
        return stage.start(number)

    with HostedGrading(start, num_hosts=1, workers=1) as grading:
        grading.check()
        assert len(stage.hosts) == 1
        failures += [OSError("Too many open files")] * 10
        stage.hosts[0].die(ActorLost("gone"))
        future = grading.submit(PROBLEM, single_turn("x"))
        for hear in (lambda: future.result(PATIENCE), lambda: grading.submit(PROBLEM, single_turn("y"))):
            with pytest.raises(RunStopped, match=r"no host .* grades any more \(gone\)"):
                hear()


def test_a_verdict_that_is_told_twice_counts_once() -> None:
    stage = Stage()
    with HostedGrading(stage.start, num_hosts=1, workers=2) as grading:
        grading.check()
        futures = [grading.submit(PROBLEM, single_turn(word)) for word in "xy"]
        (host,) = stage.hosts
        until(lambda: len(host.tasks) == 2)
        host.tasks.insert(0, host.tasks[0])
        for _ in range(3):
            host.grade(0)
        assert [future.result(PATIENCE).detail for future in futures] == ["x", "y"]


def test_a_host_that_cannot_load_the_grader_is_named_at_the_start() -> None:
    class Bare(PlayedHost):
        def receive(self) -> list[Message]:
            raise ValueError(f"{self.name}: the grader cannot be loaded: no file rewards.py")

    with (
        HostedGrading(Bare, num_hosts=2, workers=1) as grading,
        pytest.raises(ValueError, match="grader host 0: the grader cannot be loaded"),
    ):
        grading.check()


def test_who_waits_when_it_is_closed_gets_an_error() -> None:
    stage = Stage()
    grading = HostedGrading(stage.start, num_hosts=1, workers=1)
    futures = [grading.submit(PROBLEM, single_turn("x")) for _ in range(5)]
    futures[4].cancel()
    grading.close()
    for future in futures:
        with pytest.raises((PoolClosed, CancelledError)):
            future.result(PATIENCE)
