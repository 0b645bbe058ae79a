"""Writes a process's output to a file of the run, and quotes its end in errors.

log = ProcessLog(run / "logs" / "worker-0.log")
print_to(log.path)    # in the process itself
log.ends()            # "; its log runs/rl/logs/worker-0.log ends: CUDA error: an illegal memory access"
"""

from __future__ import annotations

import atexit
import os
import shlex
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import spawn
from pathlib import Path

LAST_BYTES = 2**13  # read at a file's end
LAST_LINES, LAST_LETTERS = 3, 400  # quoted in an error


class ProcessLog:
    """Create it before the process starts: earlier content of the file is from other processes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start = path.stat().st_size if path.is_file() else 0

    def ends(self) -> str:
        """A clause for an error about the process's end; "" if it printed nothing."""
        words = last_words(self.path, self.start)
        return f"; its log {self.path} ends: {words}" if words else ""


def last_words(path: Path, start: int = 0) -> str:
    """The last lines after byte `start`, joined."""
    try:
        with path.open("rb") as file:
            file.seek(max(start, file.seek(0, os.SEEK_END) - LAST_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    lines = [line for line in lines if line.strip("^~ ")]  # without a traceback's underlines
    return " / ".join(lines[-LAST_LINES:])[-LAST_LETTERS:]


def print_to(path: Path) -> None:
    """Redirect all output of this process to the file, including that of libraries."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for stream in (1, 2):
        os.dup2(file, stream)
    os.close(file)


_lock, _inside = threading.Lock(), 0


@contextmanager
def spawned_print_to(path: Path) -> Iterator[None]:
    """Redirect the output of processes that other libraries spawn inside the block.

    Nested and concurrent blocks share the first one's file, since a process has one executable to spawn.
    """
    global _inside
    if os.name != "posix":
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with _lock:
        if not _inside:
            file, name = tempfile.mkstemp(prefix="foresail-", suffix=".sh")
            os.close(file)  # an open file cannot be executed
            script = Path(name)
            script.write_text(
                f'#!/bin/sh\nexec {shlex.quote(sys.executable)} "$@" >>{shlex.quote(str(path.absolute()))} 2>&1\n'
            )
            script.chmod(0o700)
            atexit.register(script.unlink, missing_ok=True)  # at exit: started processes still read it
            if os.access(script, os.X_OK):  # else the folder is mounted noexec
                spawn.set_executable(str(script))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                spawn.set_executable(sys.executable)
