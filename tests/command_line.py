"""The `foresail` command as a process of its own, many times over, without seven seconds of imports each.

A fork server imports once what the package imports, at its start and later, and computes nothing; every
command is a fresh fork of it that calls `cli.main()` as the console script does. It has its own process id and
exit code, its output goes to files, and signals reach it: it can be stopped, killed and starved of disk like
any other.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import count
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from unittest.mock import patch

PATIENCE = 600.0  # seconds after which a test gives up; nothing takes more than a few on a free core
PRELOADED = [
    "foresail.cli",
    "foresail.train.stages.rl",
    "foresail.train.stages.sft",
    "foresail.evaluation.checkpoint",
    "torch._dynamo",  # by the first optimizer, and by the first tensor without memory: three seconds
    "torch.distributed.fsdp",  # by ranks: a second
    "tensorboard.summary",
    "matplotlib.figure",
]


@dataclass(frozen=True, kw_only=True)
class Finished:
    """How a command ended; a negative code is the number of the signal that killed it."""

    code: int
    out: str
    err: str


class Running:
    """A command under way."""

    def __init__(self, process: ForkServerProcess, out: Path, err: Path) -> None:
        self.process, self.out, self.err = process, out, err

    def until(self, seen: Callable[[], bool]) -> None:
        """Look often until something is seen, or the process has ended."""
        deadline = time.monotonic() + PATIENCE
        while not seen() and self.process.is_alive():
            assert time.monotonic() < deadline, f"waited {PATIENCE} s in vain; it said {self.said()}"
            time.sleep(0.01)  # looking reads a log, which is work that the command waits for

    def send(self, number: signal.Signals) -> None:
        if self.process.is_alive():
            assert self.process.pid is not None
            os.kill(self.process.pid, number)

    def wait(self) -> Finished:
        self.process.join(PATIENCE)
        if self.process.is_alive():
            self.process.kill()
            raise AssertionError(f"did not end within {PATIENCE} s; it said {self.said()}")
        assert self.process.exitcode is not None
        return Finished(code=self.process.exitcode, out=self.out.read_text(), err=self.err.read_text())

    def said(self) -> str:
        return self.out.read_text() + self.err.read_text()


class CommandLine:
    """`CommandLine(folder).run("show", "runs/rl")`; `folder` is where commands run and relative paths begin."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.outputs = folder / ".outputs"
        self.outputs.mkdir()
        self.numbers = count()

    def start(self, *words: object, largest_file: int | None = None, **env: str) -> Running:
        number = next(self.numbers)
        out, err = self.outputs / f"{number}.out", self.outputs / f"{number}.err"
        arguments = ([str(word) for word in words], self.folder, out, err, largest_file, env)
        out.touch()
        err.touch()
        process = servers().Process(target=call_main, args=arguments)
        process.start()
        return Running(process, out, err)

    def run(self, *words: object, **options: Any) -> Finished:
        return self.start(*words, **options).wait()


@cache
def servers() -> multiprocessing.context.ForkServerContext:
    """Made once, before there are other threads: one that starts a process while another changes the environment
    may find it half changed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    with patch.dict(os.environ, OMP_NUM_THREADS="1"):  # what the server inherits: it has no threads to fork
        forkserver.ensure_running()
    return context


def call_main(
    words: Sequence[str], folder: Path, out: Path, err: Path, largest_file: int | None, env: dict[str, str]
) -> None:
    """In the new process: put on the circumstances, then do what the console script does."""
    for path, stream in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND), stream)
    os.chdir(folder)
    os.environ.update(env)
    if largest_file is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
    sys.argv = ["foresail", *words]
    from foresail.cli import main

    main()
