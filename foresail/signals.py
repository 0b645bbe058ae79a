"""Shields child processes from Ctrl-C, which a terminal sends to all of its processes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


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
