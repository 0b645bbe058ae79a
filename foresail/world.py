"""The processes that train one model together: which of them this is, and totals over all.

    world.sum(num_tokens)   # of the whole update, over all ranks
    world.max(peak)
    world.share(order)      # what rank 0 has, on every rank
    world.gather(scores)    # what each rank has, on every rank

One process is the world of size 1, in which every total is what went in. Functions that normalise over an update
take a world, so that more ranks change nothing but rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Value = TypeVar("Value", int, float, "Tensor")
Shared = TypeVar("Shared")


class World(Protocol):
    """All ranks make the same calls in the same order; each gets the same result."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def mesh(self) -> Any:
        """The ranks as PyTorch's DeviceMesh, over which weights are sharded; None: they are whole."""

    def sum(self, value: Value) -> Value:
        """Over all ranks; a tensor element by element, on its own device."""

    def max(self, value: Value) -> Value:
        """The greatest of all ranks; NaN, if any has it."""

    def share(self, value: Shared) -> Shared:
        """Rank 0's, whatever the others bring. It may be waited for as long as rank 0 lives."""

    def gather(self, value: Shared) -> list[Shared]:
        """Those of all ranks, in their order."""


class OneProcess:
    rank, size, mesh = 0, 1, None

    def sum(self, value: Value) -> Value:
        return value

    def max(self, value: Value) -> Value:
        return value

    def share(self, value: Shared) -> Shared:
        return value

    def gather(self, value: Shared) -> list[Shared]:
        return [value]


ONE_PROCESS: World = OneProcess()
