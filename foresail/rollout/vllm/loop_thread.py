"""An asyncio loop in its own thread, for asynchronous engines; calls have a time limit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")
CLOSE_SECONDS = 10.0  # seconds for the loop to end


class LoopThread:
    """`begin` returns a future; `call` waits for the result, with TimeoutError after `seconds`."""

    def __init__(self, name: str) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name=name, daemon=True)
        self.thread.start()

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def call(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        future = self.begin(work)
        try:
            return future.result(seconds)
        finally:
            future.cancel()  # no effect if it is done

    def close(self) -> None:
        """Cancel running work; a loop that hangs is left to the end of the process."""
        with suppress(TimeoutError):
            self.call(cancel_others(), CLOSE_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(CLOSE_SECONDS)
        if not self.thread.is_alive():
            self.loop.close()


async def cancel_others() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
