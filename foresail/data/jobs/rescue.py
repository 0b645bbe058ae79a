"""What a pool does when one of its processes dies, or computes without getting on.

A `Rescue` knows how far a piece has come and what to note before it is tried again. A process is stalled when it
spends `max_cpu_seconds` without progress: CPU time, so that a busy machine stops nothing.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Protocol

TICKS = os.sysconf("SC_CLK_TCK")
STALLED = "stalled"


class Rescue(Protocol):
    @property
    def max_cpu_seconds(self) -> float: ...

    def progress(self, piece: str) -> int:
        """A number that grows while the piece gets on."""
        ...

    def after_death(self, piece: str, cause: str) -> None:
        """Called before the piece is tried again; raises where that has no sense."""
        ...


class Watch:
    """The CPU time that a process has spent since its piece last got on."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.last: tuple[str, int] | None = None
        self.since = 0.0
        self.stalled: str | None = None

    def is_stalled(self, piece: str, rescue: Rescue) -> bool:
        spent, now = cpu_seconds(self.process), (piece, rescue.progress(piece))
        if now != self.last:
            self.last, self.since = now, spent
        elif spent - self.since > rescue.max_cpu_seconds:
            self.stalled = STALLED
        return self.stalled is not None


def cpu_seconds(process: int) -> float:
    """User and system time of a process; 0 where the system has no /proc, or the process is gone."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def name_exit(code: int) -> str:
    """name_exit(-11) -> "SIGSEGV", name_exit(1) -> "exit code 1"."""
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
