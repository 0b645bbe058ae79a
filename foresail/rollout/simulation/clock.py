"""Time as a simulation makes it. Schedulers and controllers never look."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class VirtualClock:
    """Time that jumps to the next thing that is due; a simulated hour takes as long as its events do.

    clock.at(2.0, ring); clock.at(1.0, knock); clock.run()  # knocks, then rings
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()  # among equal times the first comes first

    def now(self) -> float:
        return self._now

    def at(self, moment: float, call: Callable[[], None]) -> None:
        """Call then; a moment that is past, by rounding, counts as now."""
        heapq.heappush(self._due, (max(moment, self._now), next(self._numbers), call))

    def run(self) -> None:
        """Until nothing is due any more."""
        while self._due:
            self._now, _, call = heapq.heappop(self._due)
            call()

    def stop(self) -> None:
        """Forget what is due: the rest is of no interest."""
        self._due.clear()
