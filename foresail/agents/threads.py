"""A thread pool for blocking functions that an event loop waits for.

It differs from the standard library's pool in three ways. A call's time limit starts when the call starts, not
while it waits for a thread. A call that exceeds its limit keeps its thread, and a new thread takes its place, so
tools that hang do not stall others. Python may exit while such a call still runs.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

MAX_THREADS = 1024  # without those of calls that exceeded their limit


class TooSlow(Exception):
    """A call exceeded its time limit."""


class ThreadCall:
    """A function to run in a thread, and the future that waits for it."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.context = copy_context()
        self.loop = asyncio.get_running_loop()
        self.started: asyncio.Future[None] = self.loop.create_future()
        self.ended: asyncio.Future[Any] = self.loop.create_future()
        self.running = False
        self.given_up = False

    def run(self) -> Any:
        """Its value, in a tuple, or the exception it raised."""
        self.tell(self.started, None)
        try:
            return (self.context.run(self.function),)
        except BaseException as error:  # `exit()` in a tool ends the call, nothing else
            return error

    def tell(self, future: asyncio.Future[Any], outcome: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self.loop.call_soon_threadsafe(settle, future, outcome)


def settle(future: asyncio.Future[Any], outcome: Any) -> None:
    if not future.done():
        future.set_result(outcome)  # exceptions too: `set_exception` refuses StopIteration


class Threads:
    """`await threads.run(function, seconds)` returns or raises as the function does, or raises TooSlow."""

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
        """Stop waiting for a call; if it still runs, another thread may take its place."""
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
        """Run calls until none waits, or until another thread took this one's place."""
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
