"""Threads for functions that block, so that the event loop goes on.

Three things differ from the standard library's pool. The clock of a call starts with the call, not while it waits
for a thread. A call that does not end keeps its thread, and another takes its place, so that tools that hang do not
stall the others. And Python may exit while such a call still runs.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

MAX_THREADS = 1024  # that work at a time, and mostly wait; those that were given up are not counted


class TooSlow(Exception):
    """A call ran longer than it may."""


class ThreadCall:
    """A function on its way through a thread, and whoever waits for it."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.context = copy_context()
        self.loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = self.loop.create_future()
        self.ended: asyncio.Future[Any] = self.loop.create_future()
        self.running = False
        self.given_up = False

    def run(self) -> Any:
        """What it returns, in a tuple, or what it raises."""
        self.tell(self.started, None)
        try:
            return (self.context.run(self.function),)
        except BaseException as error:  # `exit()` in a tool ends the call, nothing else
            return error

    def tell(self, future: asyncio.Future[Any], outcome: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self.loop.call_soon_threadsafe(settle, future, outcome)


def settle(future: asyncio.Future[Any], outcome: Any) -> None:
    if not future.done():
        future.set_result(outcome)  # an exception as a value too: a future refuses StopIteration


class Threads:
    """`await threads.run(function, seconds)`: what it returns or raises; TooSlow when the time is over."""

    def __init__(self, max_threads: int = MAX_THREADS) -> None:
        self.max_threads = max_threads
        self.lock = threading.Lock()
        self.waiting: deque[ThreadCall] = deque()
        self.working = 0

    async def run(self, function: Callable[[], Any], seconds: float | None = None) -> Any:
        call = ThreadCall(function)
        self.enter(call)
        try:
            await call.started
            async with asyncio.timeout(seconds):
                outcome = await call.ended
        except TimeoutError:
            raise TooSlow(f"took longer than {seconds:g} s") from None
        finally:
            self.leave(call)
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome[0]

    def enter(self, call: ThreadCall) -> None:
        with self.lock:
            self.waiting.append(call)
            if self.working >= self.max_threads:
                return
            self.working += 1
        self.start_thread()

    def leave(self, call: ThreadCall) -> None:
        """Nobody waits for it any more: if it still runs, its place is free for another thread."""
        with self.lock:
            if not call.running:
                with suppress(ValueError):
                    self.waiting.remove(call)
                return
            call.given_up = True
            if not self.waiting:
                self.working -= 1
                return
        self.start_thread()

    def start_thread(self) -> None:
        threading.Thread(target=self.work, name="tool", daemon=True).start()

    def work(self) -> None:
        """Calls one after the other; ends when none waits, or when its place was taken."""
        while True:
            with self.lock:
                if not self.waiting:
                    self.working -= 1
                    return
                call = self.waiting.popleft()
                call.running = True
            outcome = call.run()
            with self.lock:
                call.running = False
            call.tell(call.ended, outcome)
            if call.given_up:
                return


THREADS = Threads()
