"""Holds running processes to their limits: processor time, time spent waiting, output.

What counts is the work itself, by the kernel's clock for each process and from when it is ready, so a busy machine
changes no verdict. A process that sleeps uses none: it is ended when it has been idle for too long or, should it
wake now and then, by a generous backstop on the wall clock.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from typing import Any

from foresail.judge.sandbox.protocol import BUILD, KILL, NO_CALL

LONGEST_START = 30.0  # seconds that a process may take to confine itself
FIRST_LOOK, LOOK, SHORTEST_LOOK = 0.05, 1.0, 0.01  # seconds until the first look, and between two
IDLE_SHARE = 0.01  # a process that used less of a processor was idle, unless it waited for a processor
ASLEEP = b"STtZX"  # states of a thread that wants no processor, as in proc(5)


class Child:
    """A process at work, and how it ended."""

    __slots__ = (
        "at_call", "at_ready", "call", "calls", "limits", "outputs", "own", "peak_kb", "pid", "pid_in_proc",
        "seconds", "started", "status", "timed_out",
    )  # fmt: skip

    def __init__(
        self, pid: int, started: float, job: dict[str, Any], outputs: list[int], calls: int | None = None
    ) -> None:
        self.pid = pid
        self.calls = calls  # a session's file of calls
        self.call = NO_CALL  # the one that runs, as far as we have seen
        self.at_call = 0.0  # how much processor time the session had used when we first saw it
        self.started = started
        self.limits: dict[str, float] = job["limits"]
        self.outputs = outputs  # descriptors of what it prints
        # False where it may have children: their work is not on its clock, so that only rlimits bound it.
        self.own = job["role"] != BUILD and self.limits["processes"] == 1
        self.status: int | None = None
        self.timed_out = False
        self.peak_kb = 0
        self.seconds = 0.0  # of processor time
        self.at_ready: float | None = None  # how much of it went into its start; None: it is not ready yet
        self.pid_in_proc = 0  # its number in /proc, which may be another process namespace's; 0: unknown

    @property
    def work(self) -> float:
        """Seconds of processor time without the start."""
        return 0.0 if self.at_ready is None else self.seconds - self.at_ready

    def read_clock(self) -> float:
        """Seconds of processor time since the last reading."""
        before = self.seconds
        try:
            self.seconds = time.clock_gettime(~self.pid << 3 | 2)  # the number of that process's clock
        except OSError:  # it has just ended
            return 0.0
        return self.seconds - before

    def wants_processor(self, proc: int | None) -> bool:
        """Whether a thread of it runs or waits for a processor; False also where that cannot be read."""
        if proc is None or not self.pid_in_proc:
            return False
        try:
            tasks = os.open(f"{self.pid_in_proc}/task", os.O_RDONLY | os.O_DIRECTORY, dir_fd=proc)
        except OSError:
            return False
        try:
            return any(read_state(tasks, name) not in ASLEEP for name in os.listdir(tasks))
        except OSError:  # a thread has just ended
            return True
        finally:
            os.close(tasks)

    def sees_new_call(self, now: float) -> bool:
        """Whether another call runs than at the last look; its clocks start here."""
        assert self.calls is not None
        call = int.from_bytes(os.pread(self.calls, 8, 0), "little")
        if call == self.call:
            return False
        self.call, self.at_call, self.started = call, self.seconds, now
        return True

    @property
    def left(self) -> float:
        """Seconds of processor time; a session has a limit on each call besides."""
        left = self.limits["seconds"] - self.work
        if self.calls is None or self.call == NO_CALL:
            return left
        return min(left, self.limits["call_seconds"] - (self.seconds - self.at_call))

    @property
    def backstop(self) -> float:
        """Seconds on the wall clock; a session may wait for its next call as long as it likes."""
        if self.calls is None:
            return self.limits["wall_seconds"]
        return self.limits["call_wall_seconds"] if self.call != NO_CALL else math.inf

    def floods(self) -> bool:
        return any(os.fstat(output).st_size > self.limits["output_bytes"] for output in self.outputs)


def read_state(tasks: int, name: str) -> bytes:
    """One letter: R for a thread that runs or waits for a processor, D for one that waits for a disk."""
    stat = os.open(f"{name}/stat", os.O_RDONLY, dir_fd=tasks)
    try:
        return os.read(stat, 512).rpartition(b")")[2][1:2]
    finally:
        os.close(stat)


class ProcessWatch:
    """Looks at the processes of one order now and then, and ends those that are beyond their limits.

    Two that talk to each other wait for each other, so they are idle only when both are.
    """

    def __init__(self, children: list[Child], kill: Callable[[int], None], proc: int | None) -> None:
        self.children = children
        self.kill = kill
        self.proc = proc  # a descriptor of the folder /proc
        self.idle = 0.0
        self.used = 0.0  # since the window began
        self.window = self.looked = time.monotonic()
        self.max_idle_seconds = min(child.limits["idle_seconds"] for child in children)
        self.due = self.pace = FIRST_LOOK

    def look(self) -> None:
        """Does nothing before it is due."""
        now = time.monotonic()
        if now < self.looked + self.due:
            return
        self.looked = now
        self.due = self.pace = min(2 * self.pace, LOOK)
        ready = all(child.at_ready is not None for child in self.children)
        for child in self.children:
            if child.status is None and not child.timed_out:
                self.used += child.read_clock()
                if child.calls is not None and child.sees_new_call(now):
                    self.idle, self.window, self.used = 0.0, now, 0.0
                left, backstop = child.left, child.backstop + (0 if ready else LONGEST_START)
                if child.call == KILL:
                    self.kill(child.pid)
                elif (left <= 0 and child.own) or now > child.started + backstop:
                    self.end(child)
                elif child.outputs and child.floods():
                    self.kill(child.pid)  # the judge sees the size of the output
                elif child.own:
                    self.due = min(self.due, max(left, SHORTEST_LOOK))
        self.count_idle(now, ready)

    def count_idle(self, now: float, ready: bool) -> None:
        """By windows that are long enough for a share of a busy processor to show."""
        length = min(LOOK, self.max_idle_seconds)
        if now < self.window + length:
            self.due = min(self.due, self.window + length - now)
            return
        waiting = self.used < IDLE_SHARE * (now - self.window) and all(child.own for child in self.children)
        waiting = waiting and not any(
            child.calls is not None and child.call == NO_CALL for child in self.children
        )
        if waiting and ready and not any(child.wants_processor(self.proc) for child in self.children):
            self.idle += length  # not more, should this look come late
        self.window, self.used = now, 0.0
        if self.idle >= self.max_idle_seconds:
            for child in self.children:
                if child.status is None:
                    self.end(child)

    def end(self, child: Child) -> None:
        child.timed_out = True
        self.kill(child.pid)
