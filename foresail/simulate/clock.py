"""The virtual clock of a simulation, which schedulers and controllers never read."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class VirtualClock:
    """A clock that jumps from event to event.

    clock.at(2.0, ring); clock.at(1.0, knock); clock.run()  # knocks, then rings
    """

    def __init__(self) -> None:
        self._now = 0.0
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()  # events of the same time run in the order of adding
        self._awake = False

    def now(self) -> float:
        return self._now

    def at(self, moment: float, call: Callable[[], None]) -> None:
        """Call at that time; a past time, by rounding, counts as now."""
        heapq.heappush(self._due, (max(moment, self._now), next(self._numbers), call))

    def run(self) -> None:
        """Run all events."""
        while self._due:
            self._next()

    def wait(self) -> None:
        """Run events until one calls `wake`, with all others of the same time."""
        self._awake = False
        while not self._awake or (self._due and self._due[0][0] <= self._now):
            assert self._due, "nothing is due any more: whoever waits, waits for ever"
            self._next()

    def wake(self) -> None:
        """End the current wait."""
        self._awake = True

    def _next(self) -> None:
        self._now, _, call = heapq.heappop(self._due)
        call()
