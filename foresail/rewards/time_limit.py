"""A limit on what another process does, which means the same on an idle and on a busy machine.

    limit = TimeLimit(pid, seconds=60)
    limit.left()      # 60.0 at once, 0.0 when it is spent

The clock on the wall runs, but not while the process wants a core and gets none, which Linux tells: so what
computes is measured by its CPU time, and what waits for an answer from elsewhere by the time it waits. Only the
main thread is asked, and no process that it started. `PATIENCE` times the limit is the end in any case; where
the system tells nothing, the clock alone decides.
"""

from __future__ import annotations

import time
from pathlib import Path

PATIENCE = 10


class TimeLimit:
    """Runs from the moment it is made."""

    def __init__(self, pid: int, seconds: float) -> None:
        self.pid, self.seconds = pid, seconds
        self.began, self.waited_before = time.monotonic(), seconds_without_core(pid)

    def left(self) -> float:
        """Seconds until it can be spent at the earliest."""
        passed = time.monotonic() - self.began
        if passed < self.seconds:
            return self.seconds - passed
        waited = seconds_without_core(self.pid) - self.waited_before
        return max(0.0, min(self.seconds + waited, PATIENCE * self.seconds) - passed)


def seconds_without_core(pid: int) -> float:
    """How long the main thread of a process was ready to run and did not, since its start."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (
        OSError,
        ValueError,
        IndexError,
    ):  # it has ended, or this is not Linux, or the kernel does not count
        return 0.0
