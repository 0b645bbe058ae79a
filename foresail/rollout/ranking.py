"""A priority queue whose ranks may change: a heap that skips outdated entries.

    ranking.put("a", (3,)); ranking.put("b", (1,)); ranking.put("b", (9,)); ranking.first() -> "a"

An outdated entry is dropped when it comes to the top, and all are when they outnumber the others. So every call is
O(log n) on average.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item", int, str)
Rank = tuple[int, ...]

SPARE = 64  # outdated entries that are not worth a rebuild


class Ranking(Generic[Item]):
    """The item of the lowest rank first; among equal ranks the lowest item."""

    def __init__(self) -> None:
        self._ranks: dict[Item, Rank] = {}
        self._heap: list[tuple[Rank, Item]] = []

    def __len__(self) -> int:
        return len(self._ranks)

    def put(self, item: Item, rank: Rank) -> None:
        """Add an item, or move it."""
        if self._ranks.get(item) != rank:
            self._ranks[item] = rank
            heappush(self._heap, (rank, item))
            self._tidy()

    def remove(self, item: Item) -> None:
        """Take an item out, if it is here."""
        if self._ranks.pop(item, None) is not None:
            self._tidy()

    def first(self) -> Item | None:
        while self._heap:
            rank, item = self._heap[0]
            if self._ranks.get(item) == rank:
                return item
            heappop(self._heap)
        return None

    def _tidy(self) -> None:
        if len(self._heap) > 2 * len(self._ranks) + SPARE:
            self._heap = [(rank, item) for item, rank in self._ranks.items()]
            heapify(self._heap)
