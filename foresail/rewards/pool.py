"""Grading off the caller's thread, in processes that can be killed.

    with GradingPool(grader, workers=8, seconds=60) as pool:
        future = pool.submit(problem, response)      # from any thread; `await asyncio.wrap_future(future)` too
        verdict = future.result()

One thread hands out items and collects verdicts; each worker (`worker.py`) is a fresh interpreter, never a
fork of a process with CUDA in it. Whatever a grader does, its future gets a verdict:

    it raises                          crashed, with the error's last line
    it takes longer than `seconds`     timeout; its worker is killed and replaced (`time_limit.py`: what counts)
    its process dies                   tried once more in a new one, then crashed

Workers start when there is work for them, in a session of their own: Ctrl-C does not reach them, and killing
one also kills what it started. They end with the pool, or with the process that held it.
"""

from __future__ import annotations

import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait

from foresail.records import Problem, Verdict
from foresail.rewards.grading import Grading
from foresail.rewards.guard import Graded, Grader, failure, tell
from foresail.rewards.time_limit import TimeLimit

LOADING_SECONDS = 300.0  # a grader may import a large library, or read a model
LOADED = Verdict(status="correct", score=1.0, detail="the grader is loaded")
BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
BOOT += "from foresail.rewards.worker import serve; serve(int(sys.argv[2]))"


class PoolClosed(RuntimeError):
    """The pool was closed before the verdict came."""


Item = tuple[Problem, str]


@dataclass
class Job:
    """Items that travel together, mostly one; without any it only asks whether a worker can load the grader."""

    items: Sequence[Item]
    futures: list[Future[Verdict]]
    deaths: int = 0

    def split(self) -> list[Job]:
        """A job for each item, so that one which kills or delays a worker costs the others nothing."""
        pairs = zip(self.items, self.futures, strict=True)
        return [Job([item], [future]) for item, future in pairs if not future.cancelled()]


class Worker:
    """A grading process, its socket, and the job it has; `loading` until it says that it has its grader."""

    def __init__(self, grader: bytes, job: Job) -> None:
        self.job: Job | None = job
        self.loading = True
        ours, theirs = socket.socketpair()
        with theirs:
            self.connection = Connection(ours.detach())
            place = theirs.fileno()
            try:
                self.process = subprocess.Popen(
                    [
                        sys.executable,
                        "-c",
                        BOOT,
                        json.dumps([str(folder) for folder in sys.path]),
                        str(place),
                    ],
                    pass_fds=[place],
                    stdin=subprocess.DEVNULL,
                    stdout=2,  # what a reward function prints must not mix with what a command prints
                    start_new_session=True,
                )
            except BaseException:
                self.connection.close()
                raise
        self.limit = TimeLimit(self.process.pid, LOADING_SECONDS)
        with suppress(OSError):  # it is dead already; its end of the socket tells so
            self.connection.send_bytes(grader)

    def end(self) -> int:
        """Kill it with all it started, and reap it; its exit code, or minus the signal that ended it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.connection.close()
        return self.process.wait()


class GradingPool(Grading):
    """`submit` gives a future at once; `close` kills everything."""

    def __init__(self, grader: Grader, *, workers: int, seconds: float) -> None:
        if workers < 1:
            raise ValueError(f"a pool of {workers} workers grades nothing; give it at least 1")
        self._grader = pickle.dumps(grader)
        self._most, self._seconds = workers, seconds
        self._lock = threading.Lock()  # over the queue and `_closed`; workers belong to the thread alone
        self._queue: deque[Job] = deque()
        self._closed = False
        self._workers: list[Worker] = []
        self._thread: threading.Thread | None = None
        self._told = False

    def submit(self, problem: Problem, response: str) -> Future[Verdict]:
        return self.submit_batch([(problem, response)])[0]

    def submit_batch(self, items: Sequence[Item]) -> list[Future[Verdict]]:
        """Many short items in one journey, for graders that take less time than the way to them."""
        return self._enqueue(Job(items, [Future() for _ in items]))

    def check(self) -> None:
        """Wait until a worker has loaded the grader; a ValueError says why it cannot be."""
        verdict = self._enqueue(Job([], [Future()]))[0].result()
        if verdict is not LOADED:
            raise ValueError(f"the grader cannot be loaded: {verdict.detail}")

    def close(self) -> None:
        with self._lock:
            thread, was_open = self._thread, not self._closed
            self._closed = True  # before the bell: whoever hears it must see why
            if thread is not None and was_open:
                self._ring()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _enqueue(self, job: Job) -> list[Future[Verdict]]:
        with self._lock:
            if self._closed:
                raise PoolClosed("the grading pool is closed; open a new one")
            self._queue.append(job)
            if self._thread is None:
                self._bell, self._rung = socket.socketpair()
                self._bell.setblocking(False)
                self._thread = threading.Thread(target=self._run, name="grading", daemon=True)
                self._thread.start()
            self._ring()
        return job.futures

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # so many rings wait to be heard that one more is not needed
            self._bell.send(b"!")

    # The thread.

    def _run(self) -> None:
        try:
            while not self._closed:
                self._hand_out()
                self._collect()
            reason: BaseException = PoolClosed("the grading pool was closed before this verdict")
        except BaseException as error:  # ours; whoever waits for a verdict must hear of it
            reason = error
        self._end(reason)

    def _hand_out(self) -> None:
        """Give queued jobs to idle workers, then to new ones while there may be more."""
        idle = [worker for worker in self._workers if worker.job is None]
        while idle or len(self._workers) < self._most:
            job = self._next_job()
            if job is None:
                return
            if idle:
                self._give(idle.pop(), job)
            else:
                self._workers.append(self._start_worker(job))

    def _start_worker(self, job: Job) -> Worker:
        try:
            return Worker(self._grader, job)
        except BaseException:
            self._put_back(job)  # so that `_end` finds it
            raise

    def _next_job(self) -> Job | None:
        """The next one that still wants a verdict."""
        while True:
            with self._lock:
                if not self._queue:
                    return None
                job = self._queue.popleft()
            wanted = [wants_verdict(future) for future in job.futures]
            if any(wanted):
                return job

    def _give(self, worker: Worker, job: Job) -> None:
        worker.job = job
        worker.limit = TimeLimit(worker.process.pid, self._seconds * max(1, len(job.items)))
        if not job.items:
            self._settle(worker, [Graded(LOADED)])
            return
        with suppress(OSError):  # it died while idle; the end of its socket is read next
            worker.connection.send(job.items)

    def _collect(self) -> None:
        """Wait for answers, deaths, limits or new jobs, and deal with all there are."""
        patience = min(
            (worker.limit.left() for worker in self._workers if worker.job is not None), default=None
        )
        ready = wait([self._rung, *(worker.connection for worker in self._workers)], patience)
        if self._rung in ready:
            self._rung.recv(4096)
        for worker in list(self._workers):
            if worker.connection in ready:
                self._hear(worker)
            elif worker.job is not None and worker.limit.left() <= 0:
                self._give_up(worker)

    def _hear(self, worker: Worker) -> None:
        try:
            answers: list[Graded] | Graded | None = worker.connection.recv()
        except Exception:  # its end, or something else than an answer: it is of no more use
            self._bury(worker)
            return
        job = worker.job
        assert job is not None, "a worker speaks only when it was asked"
        if isinstance(answers, list):
            self._settle(worker, answers)
        elif answers is None:
            worker.loading = False
            self._give(worker, job)
        else:  # no worker will be able to load it: spare those who wait a process each
            self._remove(worker)
            self._settle(worker, [answers] * len(job.futures))
            while (job := self._next_job()) is not None:
                settle(job, [answers] * len(job.futures))

    def _settle(self, worker: Worker, answers: Sequence[Graded]) -> None:
        job, worker.job = worker.job, None
        assert job is not None
        trace = next((answer.trace for answer in answers if answer.trace), "")
        if trace and not self._told:
            self._told = True
            tell(trace)
        settle(job, answers)

    def _give_up(self, worker: Worker) -> None:
        self._remove(worker)
        if worker.job is not None and len(worker.job.items) > 1:
            self._put_back(*worker.job.split())
            return
        limit = LOADING_SECONDS if worker.loading else self._seconds
        doing = "loading the grader" if worker.loading else "grading"
        detail = f"{doing} took longer than {limit:g} s and was stopped"
        self._settle(worker, [Graded(Verdict(status="timeout", score=0.0, detail=detail))])

    def _bury(self, worker: Worker) -> None:
        """A worker is dead: its job gets one more chance."""
        how = describe_exit(self._remove(worker))
        job = worker.job
        if job is None:
            return
        job.deaths += 1
        if len(job.items) > 1:
            self._put_back(*job.split())
        elif job.deaths == 1:
            self._put_back(job)
        else:
            self._settle(worker, [Graded(failure(f"the grading process died twice; {how}"))])

    def _put_back(self, *jobs: Job) -> None:
        with self._lock:
            self._queue.extendleft(reversed(jobs))

    def _remove(self, worker: Worker) -> int:
        self._workers.remove(worker)
        return worker.end()

    def _end(self, reason: BaseException) -> None:
        with self._lock:
            self._closed = True
            jobs = list(self._queue)
            self._queue.clear()
            self._bell.close()
            self._rung.close()
        jobs += [worker.job for worker in self._workers if worker.job is not None]
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        for future in (future for job in jobs for future in job.futures):
            if not future.done() and wants_verdict(future):
                future.set_exception(reason)


def settle(job: Job, answers: Sequence[Graded]) -> None:
    for future, answer in zip(job.futures, answers, strict=True):
        if not future.cancelled():
            future.set_result(answer.verdict)


def wants_verdict(future: Future[Verdict]) -> bool:
    """Whether nobody cancelled it; from now on nobody can."""
    return future.running() or future.set_running_or_notify_cancel()


def describe_exit(code: int) -> str:
    """describe_exit(-9) -> "killed by SIGKILL, perhaps for want of memory"; describe_exit(3) -> "exit code 3"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"killed by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
