"""When step_kills.py kills: at a change below `out`, drawn from those of a quiet run while its step was at work.

    at_work = partial(curation_at_work, out, "1 balance")
    watched(process, out, at_work) -> 212            changes that were seen while the step was at work
    kill_when(process, out, at_work, 87, chance) -> "group"

Changes, not seconds: most of the time of a short run goes into starting processes.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from random_kills import children

from foresail.curate.run.progress import PROGRESS, Progress

POLL = 0.002  # seconds
AtWork = Callable[[], bool]


def curation_at_work(out: Path, label: str) -> bool:
    """Whether a process runs this step on a document, asks, or collects and decides.

    A corpus step collects and decides in work/N-NAME, until the folder `decisions` is there.
    """
    name = label.partition(" ")[2]
    for folder in out.glob(f"work/*-{name}"):
        if not (folder / "decisions").exists():
            return True
    for file in out.glob(f"work/*/*{PROGRESS}"):
        if Progress.read(file.parent, file.name.removesuffix(PROGRESS)).label == label:
            return True
    return False


def has_rows(out: Path, pattern: str) -> bool:
    """Of a command that is no curation: it has written a row."""
    try:
        return any(file.stat().st_size for file in out.glob(pattern))
    except FileNotFoundError:
        return False


def state_of(out: Path) -> int:
    """Another one when a file comes, goes, grows or is written to."""
    files = []
    for folder, _, names in os.walk(out):
        for name in names:
            try:
                stat = os.stat(f"{folder}/{name}")
            except FileNotFoundError:
                continue
            files.append((folder, name, stat.st_size, stat.st_mtime_ns))
    return hash(tuple(files))


def watched(process: subprocess.Popen[bytes], out: Path, at_work: AtWork, until: float = float("inf")) -> int:
    """Changes that were seen while the step was at work; returns after the one with the number `until`."""
    changes, state = 0, 0
    while process.poll() is None and changes < until:
        is_at_work, now = at_work(), state_of(out)
        changes += is_at_work and now != state
        state = now
        if changes < until:
            time.sleep(POLL)
    return changes


def kill_when(
    process: subprocess.Popen[bytes], out: Path, at_work: AtWork, changes: int, chance: random.Random
) -> str:
    """Its group, or every third time one worker, after which the run ends by itself; "" if it had ended."""
    watched(process, out, at_work, changes)
    if process.poll() is not None:
        return ""
    workers = children(process.pid)
    if workers and chance.randrange(3) == 0:
        try:
            os.kill(chance.choice(workers), signal.SIGKILL)
        except ProcessLookupError:
            return ""  # it had done its work
        finally:
            process.wait()
        return "worker"
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return "group"
