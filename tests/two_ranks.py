"""A world of two ranks, which are threads: `run_ranks(function)` calls it in both, each with its own `World`."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

R = TypeVar("R")


class RankWorld:
    """Every call waits for the other rank's; values meet in a table that both see."""

    size = 2

    def __init__(self, rank: int, table: dict[int, Any], barrier: Barrier) -> None:
        self.rank, self.table, self.barrier = rank, table, barrier

    def sum(self, value: Any) -> Any:
        return self._exchange(value, lambda a, b: a + b)

    def max(self, value: Any) -> Any:
        return self._exchange(value, max)

    def _exchange(self, value: Any, join: Callable[[Any, Any], Any]) -> Any:
        self.table[self.rank] = value
        self.barrier.wait()
        result = join(self.table[0], self.table[1])
        self.barrier.wait()  # both have read
        return result


def run_ranks(function: Callable[[RankWorld], R]) -> list[R]:
    table: dict[int, Any] = {}
    barrier = Barrier(2, timeout=60)
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda rank: function(RankWorld(rank, table, barrier)), range(2)))
