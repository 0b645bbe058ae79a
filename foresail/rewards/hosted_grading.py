"""Grading on many hosts, each with its own pool (`pool.py`); a host gets responses as it has room.

    with HostedGrading(start, num_hosts=8, workers=16) as grading:
        future = grading.submit(problem, trajectory)

`start(number)` starts the pool of one place. A lost pool is started again, and its jobs go to other places. A place
that stays empty for minutes is given up; when none is left, pending verdicts become errors.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field
from typing import Any, Protocol

from foresail.actors import ActorLost, ActorSilent, Message
from foresail.records import RunStopped
from foresail.rewards.grading import Pair, Part, failure
from foresail.rewards.queued_grading import GradingJob, PoolClosed, QueuedGrading, wants_verdict

Task = tuple[int, Part, Sequence[Pair]]  # a job on its way, by its number
AHEAD = 2  # jobs per grading process: one that runs, one queued behind it
MAX_DEATHS = 4  # of hosts that had a job, after which it is not tried again
MAX_FAILED_STARTS = 3  # failed starts in a row, in one place
POLL_SECONDS = 5.0  # between two checks for silent hosts

log = logging.getLogger(__name__)


class Host(Protocol):
    """A pool on some host. Calls but `close` may raise `ActorLost` (gone) or `ActorFailed` (cannot start)."""

    name: str

    def send(self, tasks: Sequence[Task]) -> None: ...

    def receive(self) -> list[Message]:
        """New messages: `ready` with its traits, once; `verdicts`; `trace` of a grader's first error."""

    @property
    def news(self) -> Future[Any]:
        """Done when there is something to receive."""

    def close(self) -> None: ...


@dataclass
class Seat:
    """A place for a host; when the host is lost, the next one takes it."""

    number: int
    host: Host | None = None
    is_given_up: bool = False
    is_ready: bool = False
    jobs: dict[int, GradingJob] = field(default_factory=dict)
    failed_starts: int = 0


class HostedGrading(QueuedGrading):
    """`workers` are the grading processes of each host."""

    def __init__(self, start: Callable[[int], Host], *, num_hosts: int, workers: int) -> None:
        super().__init__()
        self._start, self._most = start, workers * AHEAD
        self._next_number = 0
        self._lost_by = ""  # error of the first loss since a host was ready
        self._woken: Future[None] = Future()
        self._all_ready: Future[None] = Future()
        self._seats = [Seat(number) for number in range(num_hosts)]
        self._thread = threading.Thread(target=self._run, name="grading hosts", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Wait until all hosts have loaded the grader; an error says which cannot."""
        self._all_ready.result()

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._wake()
        if threading.current_thread() is not self._thread:
            self._thread.join()
        super().close()

    def _wake(self) -> None:
        if not self._woken.done():
            self._woken.set_result(None)

    # The thread.

    def _run(self) -> None:
        try:
            for seat in self._seats:
                self._fill(seat)
            while not self._closed:
                self._dispatch()
                self._wait()
                for seat in self._filled():
                    self._listen(seat)
            reason: BaseException = PoolClosed("the grading was closed before this verdict")
        except BaseException as error:  # else pending verdicts would never come
            reason = error
        self._end(reason)

    def _filled(self) -> Iterator[Seat]:
        return (seat for seat in self._seats if seat.host is not None)

    def _fill(self, seat: Seat) -> None:
        """Start hosts in empty places; a place is given up after a few failed attempts."""
        seat.host, seat.is_ready = None, False
        while seat.host is None:
            try:
                seat.host = self._start(seat.number)
            except OSError as error:  # of descriptors, or the disk for its log
                self._lost_by = self._lost_by or str(error)
                seat.failed_starts += 1
                log.warning("grader host %d cannot be started (%s)", seat.number, error)
                if seat.failed_starts > MAX_FAILED_STARTS:
                    self._give_up(seat)
                    return

    def _dispatch(self) -> None:
        """Jobs go to the host with the fewest, while any has room."""
        tasks: dict[int, list[Task]] = {}
        while seats := [seat for seat in self._filled() if seat.is_ready and len(seat.jobs) < self._most]:
            job = self._next_job()
            if job is None:
                break
            seat, self._next_number = min(seats, key=lambda seat: len(seat.jobs)), self._next_number + 1
            seat.jobs[self._next_number] = job
            tasks.setdefault(seat.number, []).append((self._next_number, job.part, job.pairs))
        for number, share in tasks.items():
            self._send(self._seats[number], share)

    def _send(self, seat: Seat, tasks: Sequence[Task]) -> None:
        assert seat.host is not None
        try:
            seat.host.send(tasks)
        except ActorLost as lost:
            self._handle_loss(seat, lost)

    def _wait(self) -> None:
        with self._lock:
            woken = self._woken
        wait(
            [woken, *(seat.host.news for seat in self._filled() if seat.host)], POLL_SECONDS, FIRST_COMPLETED
        )
        with self._lock:
            if self._woken.done():
                self._woken = Future()

    def _listen(self, seat: Seat) -> None:
        assert seat.host is not None
        try:
            messages = seat.host.receive()
        except ActorLost as lost:
            self._handle_loss(seat, lost)
            return
        for kind, content in messages:
            match kind:
                case "ready":
                    seat.is_ready, self.traits, self._lost_by = True, content, ""
                    self._tell_if_all_ready()
                case "verdicts":
                    number, verdicts = content
                    seat.failed_starts = 0
                    if (job := seat.jobs.pop(number, None)) is not None:  # None: reported twice
                        job.settle(verdicts)
                case "trace":
                    self.log_first_failure(content)

    def _handle_loss(self, seat: Seat, lost: ActorLost) -> None:
        """The jobs of a lost host go to others, in their order, before later jobs."""
        assert seat.host is not None
        log.warning("%s is lost (%s); what it graded is tried again elsewhere", seat.host.name, lost)
        self._lost_by = self._lost_by or str(lost)
        seat.host.close()
        jobs, seat.jobs = [*seat.jobs.values()], {}
        for job in reversed(jobs):
            job.deaths += 1
            if job.deaths < MAX_DEATHS:
                self._put_back(job)
            else:
                job.settle([failure(f"{job.deaths} hosts died while they graded this")])
        seat.failed_starts += 1
        never_came = isinstance(lost, ActorSilent) and not seat.is_ready
        if never_came or seat.failed_starts > MAX_FAILED_STARTS:
            self._give_up(seat)
        else:
            self._fill(seat)

    def _give_up(self, seat: Seat) -> None:
        seat.host, seat.is_ready, seat.is_given_up = None, False, True
        if all(seat.is_given_up for seat in self._seats):
            raise RunStopped(
                f"no host of the cluster grades any more ({self._lost_by}); see which are there (ray status), and "
                "resume the run, or do so with cluster.grader_hosts=0: this host grades then"
            )
        self._tell_if_all_ready()

    def _tell_if_all_ready(self) -> None:
        if not self._all_ready.done() and all(seat.is_ready for seat in self._filled()):
            self._all_ready.set_result(None)

    def _end(self, reason: BaseException) -> None:
        with self._lock:
            self._closed, self._ended_by = True, reason
            jobs = [*self._queue]
            self._queue.clear()
        for seat in self._filled():
            assert seat.host is not None
            jobs += seat.jobs.values()
            seat.host.close()
        if not self._all_ready.done():
            self._all_ready.set_exception(reason)
        for job in jobs:
            if wants_verdict(job.future):
                job.future.set_exception(reason)
