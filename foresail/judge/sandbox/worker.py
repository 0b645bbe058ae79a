"""The judge's end of one zygote: starts it, gives it orders, and reads what its children left behind."""

from __future__ import annotations

import marshal
import os
import shutil
import socket
import subprocess
import sys
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from foresail.judge.programs.program import Limits
from foresail.judge.sandbox.paths import DEVICES, library_paths, toolchain_paths
from foresail.judge.sandbox.protocol import ENDED, STARTED

GRACE_SECONDS = 30.0  # seconds beyond its limits after which a zygote that does not answer is taken for dead
START_SECONDS = 60.0
BUBBLE_BYTES = 64 << 20  # of files that programs write inside bubblewrap
PACKAGE = Path(__file__).parents[3]  # the folder that holds `foresail`
FLAGS = ("-s", "-S", "-P", "-B", "-X", "utf8", "-c")  # only the standard library, and nothing from here
ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/tmp",
    "TMPDIR": "/tmp",
    "PYTHONHASHSEED": "0",  # a verdict can be had again
    "MALLOC_ARENA_MAX": "2",  # every arena of the C library's would reserve 64 MB
    "OPENBLAS_NUM_THREADS": "1",  # a process with threads cannot be forked safely
    "OMP_NUM_THREADS": "1",
}


class WorkerDied(Exception):
    """The zygote is gone or does not answer; whatever it was doing says nothing about the program."""


@dataclass(frozen=True, kw_only=True)
class Spawn:
    """One process to start: what it does, under which limits, with which descriptors.

    Descriptors in order: the program, input, output, errors, and the channel where the role has one. Two that
    are started together get a channel to each other. A session's last one is its file of calls, which only the
    zygote sees.
    """

    role: str
    limits: Limits
    descriptors: tuple[int, ...]
    compiled: bool = False
    call_seconds: float = 0.0  # of a session: processor time of one call, and time on the wall clock
    call_wall_seconds: float = 0.0

    def plain_limits(self) -> dict[str, float]:
        """A binary's files may not be larger than its output, so that a flood of output ends where it should."""
        limits = self.limits
        files = 0 if self.role == "binary" else limits.file_mb << 20
        derived = {
            "idle_seconds": limits.max_idle_seconds,
            "wall_seconds": limits.wall_seconds,
            "largest_file": max(files, limits.output_bytes + 1),
            "call_seconds": self.call_seconds,
            "call_wall_seconds": self.call_wall_seconds,
        }
        return vars(limits) | derived


class ExitReport(NamedTuple):
    """How a process ended, as the zygote that waited for it reports."""

    status: int  # as from wait(2)
    timed_out: bool
    peak_kb: int
    seconds: float  # of processor time

    @property
    def exit(self) -> int | None:
        """The exit status; None when a signal ended it."""
        return os.waitstatus_to_exitcode(self.status) if os.WIFEXITED(self.status) else None


def interpreter() -> str:
    """The interpreter below a virtual environment: programs must not import what is installed there."""
    return str(getattr(sys, "_base_executable", sys.executable))


def boot(link: int, level: str, packages: tuple[Path, ...]) -> str:
    """What the zygote runs. `threading`, `random` and others register calls for every child, which would take
    longer than the fork. In a process of one thread they have nothing to do, so none is registered."""
    return (
        "import os; os.register_at_fork = lambda **_: None\n"
        f"import sys; sys.path.append({str(PACKAGE)!r})\n"
        "from foresail.judge.sandbox.zygote import main\n"
        f"main({link}, {level!r}, {tuple(map(str, packages))!r})"
    )


def in_bubblewrap(command: list[str], packages: tuple[Path, ...]) -> list[str]:
    """in_bubblewrap(["python", …], ()) -> ["bwrap", "--unshare-all", …, "--", "python", …].

    For hosts where only bubblewrap's setuid helper may unshare.
    """
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise FileNotFoundError("bubblewrap is not installed")
    shown = [*library_paths(map(str, packages)), *toolchain_paths(), str(PACKAGE / "foresail"), command[0]]
    binds = [part for path in shown for part in ("--ro-bind", path, path)]
    devices = [part for path in DEVICES for part in ("--dev-bind", path, path)]
    return [
        bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", *binds, *devices,
        "--size", str(BUBBLE_BYTES), "--tmpfs", "/tmp", "--remount-ro", "/", "--chdir", "/tmp", "--", *command,
    ]  # fmt: skip


class JudgeWorker:
    """One zygote. Not for two threads at once: `Judge` lends each to one caller at a time."""

    def __init__(self, level: str, packages: tuple[Path, ...] = ()) -> None:
        self.link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        WORKERS.add(self)
        with theirs:
            command = [interpreter(), *FLAGS, boot(theirs.fileno(), level, packages)]
            if level == "bubblewrap":
                try:
                    command = in_bubblewrap(command, packages)
                except FileNotFoundError as error:
                    self.link.close()
                    raise WorkerDied(str(error)) from None
            try:
                self.process = subprocess.Popen(
                    command,
                    pass_fds=[theirs.fileno()],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    env=ENVIRONMENT,
                    start_new_session=True,
                )
            except OSError as error:
                self.link.close()
                raise OSError(error.errno, f"the sandbox cannot be started: {error.strerror}") from error
        try:
            self.isolation = self.receive(START_SECONDS).decode()
        except WorkerDied:
            self.close()
            raise

    def run(self, *spawns: Spawn) -> list[ExitReport]:
        """Runs all of them at once and waits for the last. Raises WorkerDied when that cannot be done."""
        self.begin(*spawns)
        return self.wait(len(spawns), max(spawn.limits.wall_seconds for spawn in spawns) + GRACE_SECONDS)

    def begin(self, *spawns: Spawn) -> None:
        order = [
            {
                "role": spawn.role,
                "limits": spawn.plain_limits(),
                "descriptors": len(spawn.descriptors),
                "compiled": spawn.compiled,
            }
            for spawn in spawns
        ]
        descriptors = [descriptor for spawn in spawns for descriptor in spawn.descriptors]
        try:
            socket.send_fds(self.link, [marshal.dumps(order)], descriptors)
        except OSError as error:
            raise WorkerDied(f"the sandbox is gone: {error}") from None

    def end(self, seconds: float) -> ExitReport:
        """How a session's process ended, after it was ordered to end."""
        (ended,) = self.wait(1, seconds)
        return ended

    def wait(self, count: int, seconds: float) -> list[ExitReport]:
        answer = self.receive(seconds)
        if len(answer) != ENDED.size * count:
            raise WorkerDied("the sandbox talks nonsense")
        return [ExitReport(*record) for record in ENDED.iter_unpack(answer)]

    def receive(self, seconds: float) -> bytes:
        self.link.settimeout(seconds)
        try:
            answer = self.link.recv(1 << 16)
        except OSError as error:
            raise WorkerDied(f"the sandbox does not answer: {error or type(error).__name__}") from None
        if answer[:1] != STARTED:
            raise WorkerDied(answer[1:].decode("utf-8", "replace") or "the sandbox ended unexpectedly")
        return answer[1:]

    def close(self) -> None:
        """The zygote ends when its link does; one that is stuck is killed."""
        self.link.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


WORKERS: weakref.WeakSet[JudgeWorker] = weakref.WeakSet()


def abandon_workers() -> None:
    """In a fork of the judge's process: zygotes belong to the original, and must notice when that one ends."""
    for worker in list(WORKERS):
        worker.link.close()
        if hasattr(worker, "process"):
            worker.process.returncode = 0  # not our child: nothing to wait for


os.register_at_fork(after_in_child=abandon_workers)
