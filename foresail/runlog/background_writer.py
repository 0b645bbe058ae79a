"""Writing beside the run: compressing a step's samples takes longer than some steps.

writer.start(partial(run.write_rollouts, step, rows))
…
writer.wait()   # before a checkpoint says that the step is done
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any


class BackgroundWriter:
    """One thing at a time; what went wrong with it is raised when it is waited for."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="background-writer")
        self._under_way: Future[Any] | None = None

    def start(self, work: Callable[[], Any]) -> None:
        """Begin, once what was under way is done."""
        self.wait()
        self._under_way = self._thread.submit(work)

    def wait(self) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is not None:
            under_way.result()
