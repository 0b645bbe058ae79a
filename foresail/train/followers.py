"""The ranks that rank 0 leads: who failed first, and how rank 0 hears of it wherever it is.

    with leading(led, device, context=1) as world: …

Processes of this host are followers (`local_followers.py`), and Ray's actors (`ray_followers.py`).
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from foresail.train.follow import ConnectionBroken, is_broken_connection
from foresail.train.ranks import joined
from foresail.world import World

LOOKING = 0.1  # seconds between two looks at the followers
GOODBYE = 10.0  # seconds for a follower that was told to end
STUCK = 120.0  # seconds until a process that cannot be interrupted is ended
SIGNAL = getattr(signal, "SIGUSR2", signal.SIGTERM)  # Windows has none


class Follower(Protocol):
    """May be asked by several threads."""

    @property
    def failure(self) -> Exception | None:
        """What ended it, if that was no success; nobody waits for it."""

    @property
    def failed_at(self) -> float:
        """Of one that was killed 0: it does not say when, but that others found it gone came after."""

    @property
    def ended(self) -> bool:
        """By itself, or else."""

    def close(self) -> None:
        """Whatever it does, it is gone afterwards."""


@dataclass(frozen=True, kw_only=True)
class Led:
    """Followers that have started, and how rank 0 meets them."""

    followers: Sequence[Follower]
    store: Any
    network: AbstractContextManager[None]
    noticing: float  # seconds until the death of one is known, after its connections broke


@contextlib.contextmanager
def leading(led: Led, device: torch.device, context: int) -> Iterator[World]:
    """The world of rank 0. The followers are told to end when the block does; their first error is raised here."""
    size = len(led.followers) + 1
    with interrupting(led), led.network, joined(0, size, led.store, device, context=context) as world:
        try:
            yield world
            world.share(None)
        except Exception as error:  # before the others can find this rank gone
            seconds = led.noticing if is_broken_connection(error) else 0.0
            if (failure := first_failure(led.followers, seconds)) is not None and failure is not error:
                raise failure from error
            raise
    deadline = time.monotonic() + GOODBYE
    while not all(follower.ended for follower in led.followers) and time.monotonic() < deadline:
        time.sleep(LOOKING / 10)


def first_failure(followers: Sequence[Follower], seconds: float) -> Exception | None:
    """A broken connection is another's death: so long its own error, which came before, is waited for."""
    deadline = time.monotonic() + seconds
    while True:
        failed = sorted(
            (follower for follower in followers if follower.failure is not None),
            key=lambda follower: (isinstance(follower.failure, ConnectionBroken), follower.failed_at),
        )
        first = failed[0].failure if failed else None
        if time.monotonic() >= deadline or (first is not None and not isinstance(first, ConnectionBroken)):
            return first
        time.sleep(LOOKING / 10)


@contextlib.contextmanager
def interrupting(led: Led) -> Iterator[None]:
    """Inside, the death of a follower interrupts whatever the main thread is at, as Ctrl-C would.

    A thread that waits for the dead in a call of a library cannot be interrupted: it has a while to find out.
    """
    over = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def tell(*_: object) -> None:
        if not over.is_set() and (failure := first_failure(led.followers, 0.0)) is not None:
            raise failure

    def watch() -> None:
        while not over.wait(LOOKING):
            if any(follower.failure is not None for follower in led.followers):
                failure = first_failure(led.followers, led.noticing)
                if over.is_set():
                    return
                _thread.interrupt_main(SIGNAL)
                if not over.wait(STUCK):
                    print(f"error: {failure}", file=sys.stderr, flush=True)
                    os._exit(1)

    before = signal.signal(SIGNAL, tell)
    threading.Thread(target=watch, name="ranks", daemon=True).start()
    try:
        yield
    finally:
        over.set()
        signal.signal(SIGNAL, before)
