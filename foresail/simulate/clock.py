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
        self._awake = False

    def now(self) -> float:
        return self._now

    def at(self, moment: float, call: Callable[[], None]) -> None:
        """Call then; a moment that is past, by rounding, counts as now."""
        heapq.heappush(self._due, (max(moment, self._now), next(self._numbers), call))

    def run(self) -> None:
        """Until nothing is due any more."""
        while self._due:
            self._next()

    def wait(self) -> None:
        """Until there is news; what is due at the same moment happens, too."""
        self._awake = False
        while not self._awake or (self._due and self._due[0][0] <= self._now):
            assert self._due, "nothing is due any more: whoever waits, waits for ever"
            self._next()

    def wake(self) -> None:
        """There is news for whoever waits."""
        self._awake = True

    def _next(self) -> None:
        self._now, _, call = heapq.heappop(self._due)
        call()
