"""The ranks that rank 0 leads: who failed first, and how that interrupts rank 0.

    with leading(led, device, context=1) as world: …

Processes of this host are followers (`local_processes.py`), and Ray's actors (`ray_actors.py`).
"""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from foresail.train.ranks.follower import ConnectionBroken, is_broken_connection
from foresail.train.ranks.process_world import joined
from foresail.world import World

LOOKING = 0.1  # seconds between two looks at the followers
SHUTDOWN_SECONDS = 10.0  # seconds for a follower that was told to end
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

    def kill(self) -> None:
        """Whatever it does; without waiting for its end."""


@dataclass(frozen=True, kw_only=True)
class FollowerGroup:
    """Followers that have started, and how rank 0 meets them."""

    followers: Sequence[Follower]
    store: Any
    network: AbstractContextManager[None]
    noticing: float  # seconds until the death of one is known, after its connections broke


@contextlib.contextmanager
def leading(group: FollowerGroup, device: torch.device, context: int) -> Iterator[World]:
    """The world of rank 0. The followers are told to end when the block does; their first error is raised here."""
    size = len(group.followers) + 1
    with (
        watching(group) as watch,
        group.network,
        joined(0, size, group.store, device, context=context) as world,
    ):
        try:
            yield world
            world.broadcast(None)
        except Exception as error:  # before the others can find this rank gone
            cause = watch.find_cause(group.noticing if is_broken_connection(error) else 0.0)
            if cause is not None and cause is not error:
                raise cause from error
            raise
        finally:
            watch.end()  # what others say from now on is because this rank leaves
    deadline = time.monotonic() + SHUTDOWN_SECONDS
    while not all(follower.ended for follower in group.followers) and time.monotonic() < deadline:
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
def watching(group: FollowerGroup) -> Iterator[FollowerWatch]:
    """Inside, the first failure of a follower interrupts whatever the main thread is at, as Ctrl-C would.

    Another thread hears of it when it next wants something of the followers.
    """
    watch = FollowerWatch(group)
    if threading.current_thread() is not threading.main_thread():
        watch.start(lambda: None)
        try:
            yield watch
        finally:
            watch.end()
        return
    before = signal.signal(SIGNAL, watch.tell)
    watch.start(watch.interrupt_main)
    try:
        yield watch
    finally:
        watch.end()
        signal.signal(SIGNAL, before)


class FollowerWatch:
    """A thread that looks at the followers until it is `over`.

    Where one has failed it ends them all: so their connections break, and nobody goes on waiting for them.
    """

    def __init__(self, group: FollowerGroup) -> None:
        self.group, self.over = group, threading.Event()
        self.cause: Exception | None = None
        self.lock = threading.RLock()  # a signal may come while the main thread has it

    def start(self, interrupt: Callable[[], None]) -> None:
        threading.Thread(target=self._look, args=(interrupt,), name="ranks", daemon=True).start()

    def find_cause(self, seconds: float) -> Exception | None:
        """The first failure, waited for so long. Followers that this rank has ended since are not the cause."""
        with self.lock:
            if self.cause is None:
                self.cause = first_failure(self.group.followers, seconds)
            return self.cause

    def end(self) -> None:
        """No signal is sent afterwards; there may be nobody to take it."""
        with self.lock:
            self.over.set()

    def tell(self, *_: object) -> None:
        if self.cause is not None and not self.over.is_set():
            raise self.cause

    def interrupt_main(self) -> None:
        """A main thread that is in a call of a library cannot be interrupted: it has a while to find out."""
        thread = threading.main_thread().ident
        assert thread is not None
        with self.lock:
            if self.over.is_set():
                return
            if hasattr(signal, "pthread_kill"):  # which wakes it from a sleep, too
                signal.pthread_kill(thread, SIGNAL)
            else:
                _thread.interrupt_main(SIGNAL)
        if not self.over.wait(STUCK):
            print(f"error: {self.cause}", file=sys.stderr, flush=True)
            os._exit(1)

    def _look(self, interrupt: Callable[[], None]) -> None:
        while not self.over.wait(LOOKING):
            if any(follower.failure is not None for follower in self.group.followers):
                self.find_cause(self.group.noticing)
                if not self.over.is_set():
                    for follower in self.group.followers:
                        follower.kill()
                    interrupt()
                return
