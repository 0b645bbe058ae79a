"""A trial of the confinement: before any program runs, a confined process tries what must not succeed."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

LEAKS = 45


def probe(compiled: bool) -> int:
    """0 when every attempt failed; else the names of those that did not are on the error descriptor."""
    leaks = [name for name, attempt in ATTEMPTS.items() if succeeds(attempt)]
    if leaks:
        os.write(2, ", ".join(leaks).encode())
    elif succeeds(lambda: os.execv("/bin/sh", ["sh", "-c", f"echo execute >&2; exit {LEAKS}"])):
        raise AssertionError("nothing returns from a program that was executed")
    return LEAKS if leaks else 0


def succeeds(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def fork() -> None:
    if os.fork() == 0:
        os._exit(0)


def write(path: str) -> Callable[[], object]:
    def attempt() -> None:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(path)

    return attempt


ATTEMPTS: dict[str, Callable[[], object]] = {
    "read /etc/passwd": lambda: os.close(os.open("/etc/passwd", os.O_RDONLY)),
    "list /proc": lambda: os.listdir("/proc"),
    "list /root": lambda: os.listdir("/root"),
    "list /home": lambda: os.listdir("/home"),
    "write /": write("/foresail-probe"),
    "write /var/tmp": write("/var/tmp/foresail-probe"),
    "write /dev/shm": write("/dev/shm/foresail-probe"),
    "connect": lambda: socket.socket().connect(("127.0.0.1", 9)),
    "open a Unix socket": lambda: socket.socket(socket.AF_UNIX),
    "fork": fork,
    "signal the parent": lambda: os.kill(os.getppid() or -1, 0),
    "change the root": lambda: os.chroot("/tmp"),
}
