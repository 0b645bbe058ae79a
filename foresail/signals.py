"""Child processes and signals: shielded from Ctrl-C, which a terminal sends to all; killed with their parent."""

from __future__ import annotations

import ctypes
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker

PR_SET_PDEATHSIG = 1


@contextmanager
def shielded_from_interrupts() -> Iterator[None]:
    """A process that starts inside never receives Ctrl-C.

    with shielded_from_interrupts():
        process.start()

    It inherits the blocked signals. A signal that comes meanwhile reaches this process afterwards.
    """
    resource_tracker.ensure_running()  # else it starts with the first process, and unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def die_with_parent(parent: int) -> None:
    """The calling process is killed as soon as its parent ends; only Linux can do that."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before the call
        os._exit(1)
