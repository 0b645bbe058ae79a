"""Who may use the machine: several sides of `vs_trl.py` start at once, and each is timed alone.

    turns = Turns(3)
    with turns.start() as place:        # one of the three that start at once
        ...                             # imports, loading
        place.wait(0)                   # until no other does its first step, the one that takes memory
        ...                             # the first step, which does not count
        place.wait(1)                   # until all three are warm and no other is timed
        ...                             # the counted steps

A group is open for more sides until one of them is timed; the next begins when all of it have ended. So nothing
starts while a side is timed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Literal, TypeVar

Item = TypeVar("Item")
Found = TypeVar("Found")
State = Literal["starting", "first step", "warm", "timed"]


class Turns:
    def __init__(self, together: int = 1) -> None:
        self.together = together
        self.changed = threading.Condition()
        self.places: list[Place] = []
        self.open = True

    @contextmanager
    def start(self) -> Iterator[Place]:
        """Preparations have a place as well, for they must not run while a side is timed."""
        place = Place(self)
        with self.changed:
            self.changed.wait_for(lambda: self.open and len(self.places) < self.together)
            self.places.append(place)
        try:
            yield place
        finally:
            with self.changed:
                self.places.remove(place)
                self.open = self.open or not self.places
                self.changed.notify_all()

    def any(self, *states: State) -> bool:
        return any(place.state in states for place in self.places)

    def map(self, call: Callable[[Item], Found], items: Sequence[Item]) -> list[Found]:
        """In their order where one goes at a time, else each in a thread of its own."""
        if self.together == 1:
            return [call(item) for item in items]
        with ThreadPoolExecutor(max(1, len(items))) as pool:
            return [*pool.map(call, items)]


class Place:
    """Of one side, from its start to its end."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.state: State = "starting"

    def wait(self, steps: int) -> None:
        """Until it may go on after so many steps, 0 or 1."""
        turns = self.turns
        with turns.changed:
            if steps == 0:
                turns.changed.wait_for(lambda: not turns.any("first step"))
                self.state = "first step"
            else:
                self.state = "warm"
                turns.changed.notify_all()
                turns.changed.wait_for(lambda: not turns.any("starting", "first step", "timed"))
                self.state, turns.open = "timed", False
