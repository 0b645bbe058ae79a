"""Who may use the machine: several sides of `vs_trl.py` start and warm up at once, and each is timed alone.

    turns = Turns(3)
    with turns.start() as wait_alone:   # among the three that start
        ...                             # imports, loading, the first step
        wait_alone()                    # until all three are warm and no other is timed
        ...                             # the counted steps

A group of `together` sides ends before the next one starts, so that nothing starts while a side is timed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")


class Turns:
    def __init__(self, together: int = 1) -> None:
        self.together = together
        self._changed = threading.Condition()
        self._starting, self._warm, self._timed = 0, 0, False

    @contextmanager
    def start(self) -> Iterator[Callable[[], None]]:
        """Preparations have a place as well, for they must not run while a side is timed."""
        with self._changed:
            self._changed.wait_for(lambda: not self._warm and self._starting < self.together)
            self._starting += 1
        is_warm = False

        def wait_alone() -> None:
            nonlocal is_warm
            with self._changed:
                self._starting, self._warm, is_warm = self._starting - 1, self._warm + 1, True
                self._changed.notify_all()
                self._changed.wait_for(lambda: not self._starting and not self._timed)
                self._timed = True

        try:
            yield wait_alone
        finally:
            with self._changed:
                if is_warm:
                    self._warm, self._timed = self._warm - 1, False
                else:
                    self._starting -= 1
                self._changed.notify_all()

    def map(self, call: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
        """In their order where one goes at a time, else each in a thread of its own."""
        if self.together == 1:
            return [call(item) for item in items]
        with ThreadPoolExecutor(max(1, len(items))) as pool:
            return [*pool.map(call, items)]
