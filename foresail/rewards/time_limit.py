"""A time limit on another process that is the same on an idle and on a busy machine.

    limit = TimeLimit(pid, seconds=60)
    limit.left()      # 60.0 at once, 0.0 when it is spent

Wall-clock time counts, except while the process waits for a core, which Linux reports. So computing is measured by
CPU time, and waiting for an answer by the time it takes. Only the main thread is measured. `PATIENCE` times the
limit is the end in any case; where the system reports nothing, the wall clock alone counts.
"""

from __future__ import annotations

import time
from pathlib import Path

PATIENCE = 10


class TimeLimit:
    """Starts when it is created."""

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
    """Seconds since its start in which a process's main thread was ready to run but had no core."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (
        OSError,
        ValueError,
        IndexError,
    ):  # it has ended, or this is not Linux, or the kernel does not count
        return 0.0
