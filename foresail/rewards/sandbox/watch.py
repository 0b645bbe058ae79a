"""Holds running processes to their limits: processor time, time spent waiting, output.

What counts is the work itself, by the kernel's clock for each process, so a busy machine changes no verdict. A
process that sleeps uses none: it is ended when it has been idle for too long or, should it wake now and then, by
a generous backstop on the wall clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

LONGEST_START = 30.0  # seconds that a process may take to confine itself
FIRST_LOOK, LOOK, SHORTEST_LOOK = 0.05, 1.0, 0.01  # seconds until the first look, and between two
# Who used less of a processor than this was waiting: on a busy machine, too, it would have had its share.
IDLE_SHARE = 0.01


class Child:
    """A process at work, and how it ended."""

    __slots__ = ("limits", "outputs", "own", "peak_kb", "pid", "seconds", "started", "status", "timed_out")

    def __init__(self, pid: int, started: float, wanted: dict[str, Any], outputs: list[int]) -> None:
        self.pid = pid
        self.started = started
        self.limits: dict[str, float] = wanted["limits"]
        self.outputs = outputs  # descriptors of what it prints
        # Whether its work is all its own; of children's the clock knows nothing, so that only rlimits hold them.
        self.own = wanted["role"] != "build" and self.limits["processes"] == 1
        self.status: int | None = None
        self.timed_out = False
        self.peak_kb = 0
        self.seconds = 0.0

    def read_clock(self) -> float:
        """Seconds of processor time since the last reading."""
        before = self.seconds
        try:
            self.seconds = time.clock_gettime(~self.pid << 3 | 2)  # the number of that process's clock
        except OSError:  # it has just ended
            return 0.0
        return self.seconds - before

    def floods(self) -> bool:
        return any(os.fstat(output).st_size > self.limits["output_bytes"] for output in self.outputs)


class Watch:
    """Looks at the processes of one order now and then, and ends those that are beyond their limits.

    Two that talk to each other wait for each other, so they are idle only when both are.
    """

    def __init__(self, children: list[Child], kill: Callable[[int], None]) -> None:
        self.children = children
        self.kill = kill
        self.idle = 0.0
        self.used = 0.0  # since the window began
        self.window = self.looked = time.monotonic()
        self.most_idle = min(child.limits["idle_seconds"] for child in children)
        self.due = self.pace = FIRST_LOOK

    def look(self, ready: bool) -> None:
        """Does nothing before it is due. `ready`: all have begun what they were started for."""
        now = time.monotonic()
        if now < self.looked + self.due:
            return
        self.looked = now
        self.due = self.pace = min(2 * self.pace, LOOK)
        for child in self.children:
            if child.status is None and not child.timed_out:
                self.used += child.read_clock()
                left = child.limits["seconds"] - child.seconds
                backstop = child.limits["wall_seconds"] + (0 if ready else LONGEST_START)
                if (left <= 0 and child.own) or now > child.started + backstop:
                    self.end(child)
                elif child.outputs and child.floods():
                    self.kill(child.pid)  # whoever reads the output will see why
                elif child.own:
                    self.due = min(self.due, max(left, SHORTEST_LOOK))
        self.count_idle(now, ready)

    def count_idle(self, now: float, ready: bool) -> None:
        """By windows that are long enough for a share of a busy processor to show."""
        length = min(LOOK, self.most_idle)
        if now < self.window + length:
            self.due = min(self.due, self.window + length - now)
            return
        waiting = self.used < IDLE_SHARE * (now - self.window) and all(child.own for child in self.children)
        if waiting and ready:
            self.idle += now - self.window
        self.window, self.used = now, 0.0
        if self.idle >= self.most_idle:
            for child in self.children:
                if child.status is None:
                    self.end(child)

    def end(self, child: Child) -> None:
        child.timed_out = True
        self.kill(child.pid)
