"""The processes that train one model together: which of them this is, and totals over all.

    world.sum(num_tokens)   # of the whole update, over all ranks
    world.max(peak)
    world.broadcast(order)      # rank 0's value, on every rank
    world.all_gather(scores)    # every rank's value, on every rank
    world.data.sum(loss)    # over the ranks that have sequences of their own

Ranks may form context groups, which compute the same sequences together, each a slice of their tokens. `World.data`
is the world whose ranks are these groups, so that a value which all members of a group share counts once. Without
context groups it is the world itself.

One process is a world of size 1: every total is the value itself. Functions that normalise over an update take a
world, so that more ranks change nothing but rounding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from torch import Tensor

Value = TypeVar("Value", int, float, "Tensor")
Shared = TypeVar("Shared")


class ContextGroup(NamedTuple):
    """Ranks that compute the same sequences together: this rank's number in the group, their number, and PyTorch's
    process group.
    """

    rank: int
    size: int
    group: Any


class World(Protocol):
    """All ranks make the same calls in the same order; each gets the same result."""

    @property
    def rank(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def mesh(self) -> Any:
        """The ranks as PyTorch's DeviceMesh, over which weights are sharded; None: every rank has whole weights."""

    @property
    def context(self) -> ContextGroup | None:
        """This rank's context group; None where every rank computes its own sequences alone."""

    @property
    def data(self) -> World:
        """The context groups as ranks of a world: for sums of values that all members of a group share."""

    def sum(self, value: Value) -> Value:
        """The sum over all ranks; of a tensor element by element, on its own device."""

    def max(self, value: Value) -> Value:
        """The maximum over all ranks; NaN, if any rank has NaN."""

    def broadcast(self, value: Shared) -> Shared:
        """Rank 0's value; the others' arguments are ignored. It waits for as long as rank 0 lives."""

    def all_gather(self, value: Shared) -> list[Shared]:
        """The values of all ranks, in order of rank."""


class OneProcess:
    rank, size, mesh, context = 0, 1, None, None

    @property
    def data(self) -> World:
        return self

    def sum(self, value: Value) -> Value:
        return value

    def max(self, value: Value) -> Value:
        return value

    def broadcast(self, value: Shared) -> Shared:
        return value

    def all_gather(self, value: Shared) -> list[Shared]:
        return [value]


ONE_PROCESS: World = OneProcess()


def context_size(world: World) -> int:
    """Ranks that compute one micro-batch: 1 without context groups."""
    return 1 if world.context is None else world.context.size
