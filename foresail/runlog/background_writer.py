"""Writes files in a background thread, since compressing a step's samples takes longer than some steps.

writer.start(partial(run.write_rollouts, step, rows))
…
writer.wait()   # before the step's checkpoint
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class BackgroundWriter:
    """Does one piece of work at a time; `wait` raises its error."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="background-writer")
        self._under_way: Future[Any] | None = None

    def start(self, work: Callable[[], Any]) -> None:
        """Begin after the work before it."""
        self.wait()
        self._under_way = self._thread.submit(work)

    def wait(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()
