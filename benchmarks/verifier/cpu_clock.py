"""CPU seconds of this process and all its descendants, dead or alive, so that no work hides in a worker."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_seconds() -> float:
    """Own time, plus what ended children used, plus what living ones have used up to now.

    Living children are read from /proc, so they count on Linux only.
    """
    dead = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (
        time.process_time() + dead.ru_utime + dead.ru_stime + sum(map(seconds_of, descendants(os.getpid())))
    )


def descendants(pid: int) -> list[int]:
    all_descendants: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = [int(word) for word in task.read_text().split()]
        except OSError:  # the thread ended meanwhile
            continue
        for child in children:
            all_descendants += [child, *descendants(child)]
    return all_descendants


def seconds_of(pid: int) -> float:
    """The process's own threads to the nanosecond, its ended children in ticks of the clock."""
    try:
        own = sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat"))
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, IndexError):  # ended meanwhile: its parent's account has it
        return 0.0
    return own / 1e9 + (int(fields[13]) + int(fields[14])) / TICKS
