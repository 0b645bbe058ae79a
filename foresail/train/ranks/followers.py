"""Rank 0's watch over its followers: which one failed first, and the interruption of rank 0.

    with leading(group, device, context=1) as world: …

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

POLL_SECONDS = 0.1  # between two checks of the followers
SHUTDOWN_SECONDS = 10.0  # for a follower that was asked to end
INTERRUPT_SECONDS = 120.0  # until a rank 0 that cannot be interrupted is ended
SIGNAL = getattr(signal, "SIGUSR2", signal.SIGTERM)  # Windows has none


class Follower(Protocol):
    """Its members may be called from several threads."""

    @property
    def failure(self) -> Exception | None:
        """The error that ended it, or None; does not block."""

    @property
    def failed_at(self) -> float:
        """When it failed; 0 for one that was killed, whose death came before the errors it caused."""

    @property
    def ended(self) -> bool:
        """Whether its process has ended, for whatever reason."""

    def kill(self) -> None:
        """End it at once; does not wait."""


@dataclass(frozen=True, kw_only=True)
class FollowerGroup:
    """Followers that have started, and how rank 0 connects to them."""

    followers: Sequence[Follower]
    store: Any
    network: AbstractContextManager[None]
    notice_seconds: float  # until the death of one is known, after its connections broke


@contextlib.contextmanager
def leading(group: FollowerGroup, device: torch.device, context: int) -> Iterator[World]:
    """The world of rank 0. The followers end with the block; their first error is raised here."""
    size = len(group.followers) + 1
    with (
        watching(group) as watch,
        group.network,
        joined(0, size, group.store, device, context=context) as world,
    ):
        try:
            yield world
            world.broadcast(None)
        except Exception as error:
            cause = watch.find_cause(group.notice_seconds if is_broken_connection(error) else 0.0)
            if cause is not None and cause is not error:
                raise cause from error
            raise
        finally:
            watch.end()  # later errors are only that this rank left
    deadline = time.monotonic() + SHUTDOWN_SECONDS
    while not all(follower.ended for follower in group.followers) and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS / 10)


def first_failure(followers: Sequence[Follower], seconds: float) -> Exception | None:
    """A broken connection means that another rank died: wait up to `seconds` for that rank's own error."""
    deadline = time.monotonic() + seconds
    while True:
        failed = sorted(
            (follower for follower in followers if follower.failure is not None),
            key=lambda follower: (isinstance(follower.failure, ConnectionBroken), follower.failed_at),
        )
        first = failed[0].failure if failed else None
        if time.monotonic() >= deadline or (first is not None and not isinstance(first, ConnectionBroken)):
            return first
        time.sleep(POLL_SECONDS / 10)


@contextlib.contextmanager
def watching(group: FollowerGroup) -> Iterator[FollowerWatch]:
    """Inside, the first failure of a follower interrupts the main thread, as Ctrl-C would.

    Called in another thread, it interrupts nothing: that thread's next collective call fails.
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
    """A thread that polls the followers until it is `over`.

    When one has failed it kills them all: their connections break, so that no rank waits for them.
    """

    def __init__(self, group: FollowerGroup) -> None:
        self.group, self.over = group, threading.Event()
        self.cause: Exception | None = None
        self.lock = threading.RLock()  # a signal may come while the main thread has it

    def start(self, interrupt: Callable[[], None]) -> None:
        threading.Thread(target=self._look, args=(interrupt,), name="ranks", daemon=True).start()

    def find_cause(self, seconds: float) -> Exception | None:
        """The first failure, within `seconds`. Followers that were killed after it are not the cause."""
        with self.lock:
            if self.cause is None:
                self.cause = first_failure(self.group.followers, seconds)
            return self.cause

    def end(self) -> None:
        """No signal is sent afterwards: its handler is gone by then."""
        with self.lock:
            self.over.set()

    def tell(self, *_: object) -> None:
        if self.cause is not None and not self.over.is_set():
            raise self.cause

    def interrupt_main(self) -> None:
        """Signal the main thread; end the process if a library's call keeps it from answering."""
        thread = threading.main_thread().ident
        assert thread is not None
        with self.lock:
            if self.over.is_set():
                return
            if hasattr(signal, "pthread_kill"):  # which wakes it from a sleep, too
                signal.pthread_kill(thread, SIGNAL)
            else:
                _thread.interrupt_main(SIGNAL)
        if not self.over.wait(INTERRUPT_SECONDS):
            print(f"error: {self.cause}", file=sys.stderr, flush=True)
            os._exit(1)

    def _look(self, interrupt: Callable[[], None]) -> None:
        while not self.over.wait(POLL_SECONDS):
            if any(follower.failure is not None for follower in self.group.followers):
                self.find_cause(self.group.notice_seconds)
                if not self.over.is_set():
                    for follower in self.group.followers:
                        follower.kill()
                    interrupt()
                return
