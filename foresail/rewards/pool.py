"""A pool of grading processes that can be killed.

    with GradingPool(grader, workers=8, seconds=60) as pool:
        future = pool.submit(problem, trajectory)    # from any thread; `await asyncio.wrap_future(future)` too
        verdict = future.result()

One thread hands out jobs and collects verdicts; each worker (`worker.py`) is a fresh interpreter, never a
fork of a process with CUDA in it. Whatever a grader does, its future gets a verdict:

    it raises                          crashed, with the error's last line
    it takes longer than `seconds`     timeout; its worker is killed and replaced (`time_limit.py`: what counts)
    its process dies                   tried again in a new one; `MAX_DEATHS` under the same response: crashed

A worker that cannot be started, or dies before it has loaded the grader, is started again (`starts.py`); if none
can be started, pending futures get the error. Workers have the environment variables of the time the pool was
opened.

Workers start when there is work for them, in a session of their own: Ctrl-C does not reach them, and killing
one also kills what it started. They end with the pool, or with the process that held it.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from foresail.records import RunStopped, Verdict
from foresail.rewards.grading import Graded, Grader, GraderTraits, failure
from foresail.rewards.loading import LOADING_SECONDS
from foresail.rewards.print_log import PrintLog
from foresail.rewards.queued_grading import GradingJob, PoolClosed, QueuedGrading, wants_verdict
from foresail.rewards.starts import Starts
from foresail.rewards.time_limit import TimeLimit
from foresail.runlog.process_log import ProcessLog

LOADING_GRACE = 30.0  # seconds beyond the worker's own limit: what holds Python's lock can only be killed
MAX_DEATHS = 3  # of workers that had the same response: two may be killed by others, for want of memory say
LOADED = Verdict(status="correct", score=1.0, detail="the grader is loaded")
BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
BOOT += "from foresail.rewards.worker import serve; serve(int(sys.argv[2]), float(sys.argv[3]))"

log = logging.getLogger(__name__)


class GradingWorker:
    """A grading process, its socket, and the job it has; `loading` until it says that it has its grader."""

    def __init__(
        self, grader: bytes, job: GradingJob, prints: PrintLog | None, environment: Mapping[str, str]
    ) -> None:
        self.job: GradingJob | None = job
        self.loading = True
        ours, theirs = socket.socketpair()
        with theirs:
            self.connection = Connection(ours.detach())
            if prints is not None:
                prints.open()
            self.log = None if prints is None else ProcessLog(prints.path)
            place = theirs.fileno()
            try:
                self.process = subprocess.Popen(
                    [
                        sys.executable,
                        "-u",  # a worker that is killed has printed what it printed
                        "-c",
                        BOOT,
                        json.dumps([str(folder) for folder in sys.path]),
                        str(place),
                        str(LOADING_SECONDS),
                    ],
                    pass_fds=[place],
                    stdin=subprocess.DEVNULL,
                    # what a reward function prints must not mix with what a command prints
                    stdout=2 if prints is None else prints.descriptor(),
                    stderr=None if prints is None else prints.descriptor(),
                    # a copy: `exec` fails with "Bad address" where another thread changes the process's own
                    env=environment,
                    start_new_session=True,
                )
            except BaseException:
                self.connection.close()
                raise
        self.limit = TimeLimit(self.process.pid, LOADING_SECONDS + LOADING_GRACE)
        with suppress(OSError):  # it is dead already, as its socket will show
            self.connection.send_bytes(grader)

    @property
    def is_dead(self) -> bool:
        """Checked without reaping it, so that its process id is not reused before `end`."""
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    def end(self) -> int:
        """Kill it with all it started, and reap it; its exit code, or minus the signal that ended it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.connection.close()
        return self.process.wait()


class GradingPool(QueuedGrading):
    """`close` kills everything."""

    _start_failure_logged = False

    def __init__(
        self, grader: Grader, *, workers: int, seconds: float, prints: PrintLog | None = None
    ) -> None:
        if workers < 1:
            raise ValueError(f"a pool of {workers} workers grades nothing; give it at least 1")
        super().__init__()
        self._grader, self.prints = pickle.dumps(grader), prints
        self._max_workers, self._seconds = workers, seconds
        self._environment, self._starts = copy_environment(), Starts()
        self._workers: list[GradingWorker] = []
        self._thread: threading.Thread | None = None

    def check(self) -> None:
        """Wait until a worker has loaded the grader; a ValueError says why it cannot be."""
        verdict = self._enqueue(GradingJob("whole")).result()
        if verdict is not LOADED:
            raise ValueError(f"the grader cannot be loaded: {verdict.detail}")

    def close(self) -> None:
        with self._lock:
            thread, was_open = self._thread, not self._closed
            self._closed = True  # before waking the thread, which must see why it was woken
            if thread is not None and was_open:
                self._wake()
        if thread is not None and thread is not threading.current_thread():
            thread.join()
        super().close()

    def _wake(self) -> None:
        """The first job starts the thread."""
        if self._thread is None:
            self._waker, self._woken = socket.socketpair()
            self._waker.setblocking(False)
            self._thread = threading.Thread(target=self._run, name="grading", daemon=True)
            self._thread.start()
        with suppress(BlockingIOError):  # so many wake-ups wait to be read that one more is not needed
            self._waker.send(b"!")

    # The thread.

    def _run(self) -> None:
        try:
            while not self._closed:
                self._dispatch()
                self._wait()
            reason: BaseException = PoolClosed("the grading pool was closed before this verdict")
        except BaseException as error:  # a bug of ours; else pending verdicts would never come
            reason = error
        self._end(reason)

    def _dispatch(self) -> None:
        """Give queued jobs to idle workers, then to new ones while there may be more."""
        idle = [worker for worker in self._workers if worker.job is None]
        while idle or self._may_start():
            job = self._next_job()
            if job is None:
                return
            if not idle:
                self._start_worker(job)
            elif idle[-1].is_dead:  # since it was last heard: it never had this job
                self._put_back(job)
                self._remove(idle.pop())
            else:
                self._send(idle.pop(), job)

    def _may_start(self) -> bool:
        return len(self._workers) < self._max_workers and not self._starts.seconds_left()

    def _start_worker(self, job: GradingJob) -> None:
        try:
            worker = GradingWorker(self._grader, job, self.prints, self._environment)
        except OSError as error:
            self._put_back(job)
            self._handle_failed_start(error)
        except BaseException:
            self._put_back(job)  # `_end` looks for it there
            raise
        else:
            self._workers.append(worker)

    def _handle_failed_start(self, error: OSError) -> None:
        """The others go on, and it is tried again; where there are none and it never succeeds, this is the end."""
        self._starts.fail(str(error))
        if not self._starts.are_hopeless:
            return
        words = f"no grading process can be started: {self._starts.cause}"
        if not self._has_loaded():
            raise RunStopped(
                f"{words} (tried {self._starts.failed} times). See what this host lacks (ulimit -n, ulimit -u, "
                "memory), or lower reward.workers; then resume the run"
            ) from error
        if not self._start_failure_logged:
            self._start_failure_logged = True
            log.warning("%s; %d others go on, and it is tried again", words, len(self._workers))

    def _send(self, worker: GradingWorker, job: GradingJob) -> None:
        worker.job = job
        worker.limit = TimeLimit(worker.process.pid, self._seconds)
        if not job.pairs:
            self._settle(worker, Graded([LOADED]))
            return
        with suppress(OSError):  # it died this moment; the end of its socket is read next
            worker.connection.send((job.part, job.pairs))

    def _wait(self) -> None:
        """Wait for answers, deaths, time limits, new jobs or another start, and handle all of them."""
        times = [worker.limit.left() for worker in self._workers if worker.job is not None]
        if self._queue and len(self._workers) < self._max_workers:
            times.append(self._starts.seconds_left())
        patience = min(times, default=None)
        ready = wait([self._woken, *(worker.connection for worker in self._workers)], patience)
        if self._woken in ready:
            self._woken.recv(4096)
        for worker in list(self._workers):
            if worker.connection in ready:
                self._receive(worker)
            elif worker.job is not None and worker.limit.left() <= 0:
                self._handle_timeout(worker)

    def _receive(self, worker: GradingWorker) -> None:
        try:
            answer: Graded | GraderTraits = worker.connection.recv()
        except Exception:  # it has ended, or sent something that is no answer
            self._handle_death(worker)
            return
        job = worker.job
        assert job is not None, "a worker speaks only when it was asked"
        if isinstance(answer, GraderTraits):
            worker.loading, self.traits = False, answer
            self._starts.succeed()
            self._send(worker, job)
            return
        if worker.loading:
            self._remove(worker)
        self._settle(worker, answer)
        if worker.loading:
            self._settle_all(answer)

    def _settle(self, worker: GradingWorker, answer: Graded) -> None:
        job, worker.job = worker.job, None
        assert job is not None
        self.log_first_failure(answer.trace)
        job.settle(answer.verdicts)

    def _handle_timeout(self, worker: GradingWorker) -> None:
        self._remove(worker)
        limit = LOADING_SECONDS if worker.loading else self._seconds
        doing = "loading the grader" if worker.loading else "grading"
        detail = f"{doing} took longer than {limit:g} s and was stopped"
        self._settle(worker, Graded([Verdict(status="timeout", score=0.0, detail=detail)]))

    def _handle_death(self, worker: GradingWorker) -> None:
        """A worker is dead: its job is tried again, until too many workers died with it."""
        how = describe_exit(self._remove(worker)) + (worker.log.ends() if worker.log is not None else "")
        job = worker.job
        if job is None:
            return
        if worker.loading:
            self._starts.fail(how)
            self._put_back(job)
            if self._starts.are_hopeless and not self._has_loaded():
                words = f"{self._starts.failed} grading processes died while they loaded the grader"
                self._settle_all(Graded([failure(f"{words}; {self._starts.cause}")]))
            return
        job.deaths += 1
        if job.deaths < MAX_DEATHS:
            self._put_back(job)
        else:
            self._settle(worker, Graded([failure(f"the grading process died {job.deaths} times; {how}")]))

    def _settle_all(self, answer: Graded) -> None:
        """The grader cannot be loaded: pending jobs fail without a process each."""
        while (waiting := self._next_job()) is not None:
            waiting.settle(answer.verdicts)

    def _has_loaded(self) -> bool:
        return any(not worker.loading for worker in self._workers)

    def _remove(self, worker: GradingWorker) -> int:
        self._workers.remove(worker)
        return worker.end()

    def _end(self, reason: BaseException) -> None:
        with self._lock:
            self._closed, self._ended_by = True, reason
            jobs = list(self._queue)
            self._queue.clear()
            self._waker.close()
            self._woken.close()
        jobs += [worker.job for worker in self._workers if worker.job is not None]
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        for job in jobs:
            if wants_verdict(job.future):
                job.future.set_exception(reason)


def copy_environment() -> dict[str, str]:
    """This process's variables, even while another thread removes some."""
    copy = {}
    for name in list(os.environ):
        with suppress(KeyError):
            copy[name] = os.environ[name]
    return copy


def describe_exit(code: int) -> str:
    """describe_exit(-9) -> "killed by SIGKILL, perhaps for want of memory"; describe_exit(3) -> "exit code 3"."""
    if code >= 0:
        return f"exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    return f"killed by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")
