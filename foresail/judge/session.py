"""A Python process in the judge's sandbox that keeps its names between calls, for agents that compute.

    session = JudgeSession(judge)
    session.run("x = 2") -> ""
    session.run("x + 1") -> "3"
    session.close()

It is confined and limited as programs are (`foresail.judge.sandbox`), and holds one of the judge's workers from its
first call until it is closed. Code that ends its process or breaks a limit loses its names, and the output says
so; the next call starts afresh. `WorkerDied` means that the sandbox itself failed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from dataclasses import dataclass, field

from foresail.judge.judge import Judge
from foresail.judge.programs.program import Limits
from foresail.judge.sandbox.frames import MAX_FRAME_BYTES
from foresail.judge.sandbox.memory_files import holding
from foresail.judge.sandbox.protocol import KILL, NO_CALL
from foresail.judge.sandbox.trial import DEV_NULL, to_bytes
from foresail.judge.sandbox.worker import GRACE_SECONDS, ExitReport, JudgeWorker, Spawn, WorkerDied

START_SECONDS = 30.0  # seconds that a process may take until it is confined
LOST = "all variables are lost"


@dataclass(frozen=True, kw_only=True)
class SessionLimits:
    """`seconds` of processor time for a call; `session` has what the process may use in all its life."""

    seconds: float = 5.0
    chars: int = 20_000  # that one call may print
    session: Limits = field(default_factory=lambda: Limits(seconds=60, idle_seconds=10, memory_mb=512))

    @property
    def hard_seconds(self) -> float:
        """The process stops itself at `seconds`; one that does not is ended here."""
        return 1.2 * self.seconds + 0.2

    @property
    def wall_seconds(self) -> float:
        return Limits(seconds=self.seconds, idle_seconds=self.session.max_idle_seconds).wall_seconds


class ProcessEnded(Exception):
    """The session's process is gone, by its own doing."""


class Process:
    """One process of a session, on a worker that it has for itself."""

    def __init__(self, worker: JudgeWorker, limits: SessionLimits, calls: int) -> None:
        self.worker, self.limits, self.calls = worker, limits, calls
        self.channel, theirs = socket.socketpair()
        settings = json.dumps({"seconds": limits.seconds, "chars": limits.chars}).encode()
        with theirs, holding(settings) as (program,):
            descriptors = (program, DEV_NULL, DEV_NULL, DEV_NULL, theirs.fileno(), calls)
            worker.begin(
                Spawn(
                    role="session",
                    limits=limits.session,
                    descriptors=descriptors,
                    call_seconds=limits.hard_seconds,
                    call_wall_seconds=limits.wall_seconds,
                )
            )

    def ask(self, code: bytes) -> bytes:
        """Raises ProcessEnded."""
        self.channel.settimeout(self.limits.wall_seconds + START_SECONDS + GRACE_SECONDS)
        try:
            self.channel.sendall(len(code).to_bytes(4, "big") + code)
            length = int.from_bytes(self.receive(4), "big")
            return self.receive(min(length, MAX_FRAME_BYTES))
        except TimeoutError:
            raise WorkerDied("the sandbox does not end a process that is beyond its limits") from None
        except OSError:
            raise ProcessEnded from None

    def receive(self, length: int) -> bytes:
        parts = []
        while length:
            part = self.channel.recv(min(length, 1 << 20))
            if not part:
                raise ProcessEnded
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def end(self) -> ExitReport:
        """Ends it, if it has not ended. Raises WorkerDied."""
        self.channel.close()
        return self.worker.end(GRACE_SECONDS)


class JudgeSession:
    """`run` and `close` may be called from several threads; calls run one after the other."""

    def __init__(self, judge: Judge, limits: SessionLimits | None = None) -> None:
        self.judge, self.limits = judge, limits or SessionLimits()
        self.process: Process | None = None
        self.lock = threading.Lock()
        self.calls = os.memfd_create("calls")  # the number of the call that runs, for the zygote's watch
        self.number = NO_CALL
        self.announcing = threading.Lock()
        self.closing = False

    def run(self, code: str) -> str:
        """What it printed and the value of its last expression, or what went wrong. Raises WorkerDied."""
        with self.lock:
            if self.closing:
                return f"the session is closed; {LOST}"
            if self.process is None:
                self.process = self.start()
            self.number += 1
            self.announce(self.number)
            try:
                return self.process.ask(to_bytes(code)).decode("utf-8", "replace")
            except ProcessEnded:
                return f"error: {self.explain(self.stop())}; {LOST}"
            except BaseException:
                self.abandon()
                raise
            finally:
                self.announce(NO_CALL)

    def start(self) -> Process:
        worker = self.judge.lend()
        try:
            return Process(worker, self.limits, self.calls)
        except BaseException:
            self.judge.take_back(None)
            worker.close()
            raise

    def stop(self) -> ExitReport:
        """Ends the process and gives the worker back."""
        process, self.process = self.process, None
        assert process is not None
        try:
            ended = process.end()
        except BaseException:
            self.process = process
            self.abandon()
            raise
        self.judge.take_back(process.worker)
        return ended

    def abandon(self) -> None:
        """Closes a worker that may still be busy: nobody else can use it."""
        process, self.process = self.process, None
        if process is not None:
            self.judge.take_back(None)
            process.channel.close()
            process.worker.close()

    def explain(self, ended: ExitReport) -> str:
        limits = self.limits
        if self.closing:
            return "the session was closed"
        if ended.seconds >= limits.session.seconds:
            return f"the Python process was ended: {limits.session.seconds:g} s of processor time in all are spent"
        if ended.timed_out:
            return f"the Python process was ended: time limit {limits.seconds:g} s"
        if ended.exit is None:
            name = signal.Signals(os.WTERMSIG(ended.status)).name
            return f"the Python process was ended by {name} (it may use {limits.session.memory_mb} MB)"
        return f"the Python process has ended with status {ended.exit}"

    def announce(self, number: int) -> None:
        """Which call runs. Once the session is being closed nothing is written over the order to end."""
        with self.announcing:
            if not self.closing:
                os.pwrite(self.calls, number.to_bytes(8, "little"), 0)

    def close(self) -> None:
        """Ends the process, also while a call runs."""
        with self.announcing:
            if self.closing:
                return
            self.closing = True
            os.pwrite(self.calls, KILL.to_bytes(8, "little"), 0)
        with self.lock:
            try:
                if self.process is not None:
                    self.stop()
            finally:
                os.close(self.calls)
