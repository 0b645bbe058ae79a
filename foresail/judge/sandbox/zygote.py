"""The warm process: holds the standard library and nothing else, and forks one confined process per test.

It reads only orders (a role, limits, descriptors); programs, inputs and outputs pass through descriptors that it
hands on unread, so no fork finds another test's data in its memory.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _sitebuiltins
import builtins
import fcntl
import gc
import importlib
import marshal
import os
import posix
import random
import select
import signal
import socket
import struct
import sys
import time
from typing import Any, Protocol

from foresail.judge.sandbox import kernel, roles
from foresail.judge.sandbox.fallback import Boxed, Restricted, Unconfined
from foresail.judge.sandbox.namespaces import Namespaces
from foresail.judge.sandbox.protocol import ENDED, FAILED, STARTED
from foresail.judge.sandbox.watch import LONGEST_START, Child, ProcessWatch

Order = list[dict[str, Any]]  # one entry per process to start

PACKAGE = os.path.abspath(__file__ + "/../../../..")
DESCRIPTOR_NUMBERS = (
    3,
    0,
    1,
    2,
    4,
)  # of the program, input, output, errors and the channel, in the order they arrive
IS_READY = b"r"  # with which no exception's name begins
# IS_READY, which of the order, its number in /proc, processor seconds that its start took
READY = struct.Struct("=cBid")
PRINTING = ("main", "binary")  # roles whose output is limited
PRELOADED = (
    "array atexit bisect cmath collections collections.abc copy datetime decimal fractions functools heapq io"
    " itertools json math operator queue random re resource signal statistics string sys threading time types"
    " typing"
).split()


class Confinement(Protocol):
    """What every level of isolation does. Read `Namespaces` first."""

    def __init__(self, packages: tuple[str, ...]) -> None: ...

    def start(self) -> str:
        """Once, in the zygote: all that can be done beforehand. Returns the isolation in words."""

    def prepare(self, order: Order) -> None:
        """Before the forks of one order."""

    def fork(self) -> int: ...

    def confine(self, job: dict[str, Any]) -> None:
        """In the new process, before it sees a program."""

    def kill(self, pid: int) -> None: ...

    def clean(self) -> None:
        """After an order: no process and no file of it stays."""

    def stop(self) -> None:
        """When the zygote ends."""


LEVELS: dict[str, type[Confinement]] = {
    "namespaces": Namespaces,
    "landlock": Restricted,
    "bubblewrap": Boxed,
    "none": Unconfined,
}


class Zygote:
    """Carries out one order at a time until the judge hangs up.

    After a fork every page the zygote writes to is copied, and in Python to read an object is to write to it. So
    the loop keeps to builtin functions and small records: with `json` and the enums of `signal` it was much slower.
    """

    def __init__(self, link: socket.socket, confinement: Confinement, proc: int | None) -> None:
        self.link = link
        self.confinement = confinement
        self.proc = proc
        self.failure = b""
        while os.open(os.devnull, os.O_RDONLY) <= max(DESCRIPTOR_NUMBERS):
            pass  # these numbers stay taken, so that nothing arrives on one that a child will reuse
        self.ready_in, self.ready_out = map(kernel.lift, os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC))
        # A judge that dies while a test runs is noticed by a signal, as the end of the test is.
        self.signals = (signal.SIGCHLD.value, signal.SIGIO.value)
        _signal.pthread_sigmask(_signal.SIG_BLOCK, self.signals)
        fcntl.fcntl(link, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(link, fcntl.F_SETFL, fcntl.fcntl(link, fcntl.F_GETFL) | os.O_ASYNC)

    def work(self) -> None:
        roles.warm_up()
        gc.collect()
        gc.freeze()  # a collection in a child would touch, and so copy, every page
        gc.disable()
        size = socket.CMSG_SPACE(4 * 4 * len(DESCRIPTOR_NUMBERS))
        while True:
            message, extra, _, _ = self.link.recvmsg(1 << 16, size)
            if not message:
                return
            descriptors = list(memoryview(extra[0][2]).cast("i"))
            children = self.spawn(marshal.loads(message), descriptors)
            self.wait(children)
            for descriptor in descriptors:
                os.close(descriptor)
            self.confinement.clean()
            self.link.send(self.report(children))

    # Starting.

    def spawn(self, order: Order, descriptors: list[int]) -> list[Child]:
        """Forks a process for each job. Two jobs of one order get the two ends of a channel of their own."""
        self.confinement.prepare(order)
        ends = [end.detach() for end in socket.socketpair()] if len(order) == 2 else []
        children = []
        for at, job in enumerate(order):
            own, descriptors = descriptors[: job["descriptors"]], descriptors[job["descriptors"] :]
            outputs = own[2:4] if job["role"] in PRINTING else []
            calls = own.pop() if job["role"] == "session" else None
            own += ends[at : at + 1]
            started = time.monotonic()
            pid = self.confinement.fork()
            if pid == 0:
                self.become(at, job, own)
            children.append(Child(pid, started, job, outputs, calls))
        for end in ends:
            os.close(end)
        return children

    def become(self, at: int, job: dict[str, Any], descriptors: list[int]) -> None:
        """What the child does; it exits here and never returns into the zygote's loop.

        It reports that it is ready before the program runs, and closes that pipe. So a program cannot make its own
        failure look like the sandbox's.
        """
        try:
            pid_in_proc = 0 if self.proc is None else int(os.readlink("self", dir_fd=self.proc))
            for place, descriptor in zip(DESCRIPTOR_NUMBERS, descriptors, strict=False):
                os.dup2(descriptor, place)
            self.confinement.confine(job)
            os.closerange(max(DESCRIPTOR_NUMBERS[: len(descriptors)]) + 1, self.ready_out)
            os.closerange(self.ready_out + 1, kernel.MAX_DESCRIPTORS)
            _signal.pthread_sigmask(_signal.SIG_SETMASK, ())
            os.write(self.ready_out, READY.pack(IS_READY, at, pid_in_proc, time.process_time()))
            os.close(self.ready_out)
            gc.enable()
        except BaseException as error:
            os.write(self.ready_out, f"{type(error).__name__}: {error}".encode()[:300])
            os._exit(1)
        try:
            os._exit(roles.ROLES[job["role"]](job["compiled"]))
        finally:
            os._exit(1)

    # Waiting.

    def wait(self, children: list[Child]) -> None:
        """Until the last child ends; the others only serve it."""
        last = children[-1]
        watch = ProcessWatch(children, self.confinement.kill, self.proc)
        while last.status is None:
            if _signal.sigtimedwait(self.signals, watch.due) and self.judge_is_gone():
                self.confinement.stop()
                os._exit(0)  # the children die with this process
            self.reap(children, os.WNOHANG)
            self.listen(children)
            watch.look()
        self.await_ready(children)
        for child in children:
            if child.status is None:
                self.confinement.kill(child.pid)
        self.reap(children, 0)
        self.listen(children)

    def await_ready(self, children: list[Child]) -> None:
        """A script that does not even compile ends before its program has begun: no fault of the sandbox's."""
        self.listen(children)
        while not self.failure and any(child.status is None and child.at_ready is None for child in children):
            if time.monotonic() > children[0].started + LONGEST_START:
                break
            select.select([self.ready_in], [], [], 0.1)
            self.reap(children, os.WNOHANG)
            self.listen(children)

    def listen(self, children: list[Child]) -> None:
        """Reads which children are ready, or why one cannot be."""
        try:
            said = os.read(self.ready_in, 1 << 12)
        except BlockingIOError:
            return
        while said[:1] == IS_READY:
            _, at, children[at].pid_in_proc, children[at].at_ready = READY.unpack_from(said)
            said = said[READY.size :]
        self.failure += said

    def judge_is_gone(self) -> bool:
        try:
            return not self.link.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False

    def reap(self, children: list[Child], options: int) -> None:
        for child in children:
            if child.status is None:
                pid, status, usage = os.wait4(child.pid, options)
                if pid:
                    child.status, child.peak_kb = status, usage.ru_maxrss
                    child.seconds = usage.ru_utime + usage.ru_stime

    def report(self, children: list[Child]) -> bytes:
        failure, self.failure = self.failure, b""
        if failure or any(child.at_ready is None for child in children):
            return FAILED + (failure or b"a process ended before it was ready")
        records = [ENDED.pack(c.status, c.timed_out, c.peak_kb, c.work) for c in children]
        return STARTED + b"".join(records)


def preload(packages: tuple[str, ...]) -> None:
    """Imports what programs import, and makes the interpreter look as a fresh one would."""
    sys.path[:] = [entry for entry in sys.path if entry != PACKAGE]
    sys.path += dict.fromkeys(os.path.dirname(package) for package in packages)
    for name in (*PRELOADED, *map(os.path.basename, packages)):
        if not name.endswith(".libs"):
            importlib.import_module(name)
    os.register_at_fork = posix.register_at_fork  # see `boot`
    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D")  # what `site` would have added
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D")
    random.seed(0)  # so that a verdict can be had again
    for name in [name for name in sys.modules if name.startswith("foresail")]:
        del sys.modules[name]  # a program must not find this package by name


def open_proc() -> int | None:
    """/proc of the host, opened before the confinement hides it: shows which children want a processor."""
    try:
        return kernel.lift(os.open("/proc", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError:
        return None


def main(descriptor: int, level: str, packages: tuple[str, ...]) -> None:
    """Confines itself, reports how, and carries out orders."""
    link = socket.socket(fileno=kernel.lift(descriptor))
    proc = open_proc()
    confinement = LEVELS[level](packages)
    try:
        isolation = confinement.start()
        preload(packages)
        zygote = Zygote(link, confinement, proc)
        link.send(STARTED + isolation.encode())
    except BaseException as error:
        link.send(FAILED + f"{type(error).__name__}: {error}".encode())
        return
    try:
        zygote.work()
    finally:
        confinement.stop()
