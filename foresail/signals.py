"""Signals of a terminal: Ctrl-C reaches every process that it runs, and is for the first one to answer."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker


@contextmanager
def shielded_from_interrupts() -> Iterator[None]:
    """A process that starts meanwhile never sees Ctrl-C, from its first instruction on.

    with shielded_from_interrupts():
        process.start()

    It inherits which signals are blocked. One that comes meanwhile waits, and reaches this process afterwards.
    """
    resource_tracker.ensure_running()  # else it starts with the first process, and unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
