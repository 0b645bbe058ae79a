"""The processes that train one model together: which of them this is, and totals over all.

    world.sum(num_tokens)   # of the whole update, over all ranks
    world.max(peak)

One process is the world of size 1, in which every total is what went in. Functions that normalise over an update
take a world, so that more ranks change nothing but rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Value = TypeVar("Value", int, float, "Tensor")


class World(Protocol):
    """All ranks make the same calls in the same order; each gets the same result."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    def sum(self, value: Value) -> Value:
        """Over all ranks; a tensor element by element, on its own device."""

    def max(self, value: Value) -> Value:
        """The greatest of all ranks; NaN, if any has it."""


class OneProcess:
    rank, size = 0, 1

    def sum(self, value: Value) -> Value:
        return value

    def max(self, value: Value) -> Value:
        return value


ONE_PROCESS: World = OneProcess()
