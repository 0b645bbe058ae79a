"""Sends buckets of weights from the trainer to all engines by torch.distributed's broadcast.

    transport = Broadcast("10.0.0.1", "gloo")   # on CPUs; "nccl" between GPUs

The transport has its own group beside that of the trainer's ranks: rank 0 is the trainer, the others are the
members of a push. When a member is lost or joins, a group with a new number is formed. Every collective has a time
limit; a failure raises `NotArrived` on its side, and the sync reports the missing member.

NCCL is untested: no machine with two GPUs was available.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from foresail.rollout.weights.buckets import BucketPiece, Content, NotArrived
from foresail.rollout.weights.sync import Crew

Kind = Literal["gloo", "nccl"]
SECONDS = 300.0  # for a group to meet and for a bucket to arrive; less than the limit of an answer

# In an engine's process: its group, by number.
joined: dict[int, BroadcastGroup] = {}


class BroadcastGroup:
    """A process group that is not the default one."""

    def __init__(
        self, kind: Kind, store: dist.Store, rank: int, size: int, host: str, seconds: float
    ) -> None:
        self.limit, self.kind = timedelta(seconds=seconds), kind
        self.device = (
            torch.device("cuda", torch.cuda.current_device()) if kind == "nccl" else torch.device("cpu")
        )
        self.group: Any = make_group(kind, store, rank, size, host, self.limit)

    def broadcast(self, octets: Tensor) -> Any:
        """Start a broadcast from rank 0; `wait` takes the result."""
        options = dist.BroadcastOptions()
        options.rootRank = options.rootTensor = 0
        options.timeout = self.limit
        return self.group.broadcast([octets], options)

    def wait(self, work: Any) -> None:
        try:
            work.wait(self.limit)
            if self.kind == "nccl":
                torch.cuda.synchronize(self.device)  # `wait` alone only orders the streams
        except RuntimeError as error:
            raise NotArrived(str(error).splitlines()[0]) from error

    def close(self) -> None:
        """Leave the group; other ranks that wait get an error immediately."""
        self.group.abort()
        self.group = None


def make_group(kind: Kind, store: dist.Store, rank: int, size: int, host: str, limit: timedelta) -> Any:
    if kind == "nccl":
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = limit
        return dist.ProcessGroupNCCL(store, rank, size, options)
    options = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
    options._timeout = limit
    options._devices = [dist.ProcessGroupGloo.create_device(hostname=host)]
    return dist.ProcessGroupGloo(store, rank, size, options)


@dataclass(frozen=True, kw_only=True)
class Invitation:
    """Tells a member the group's number and where it meets."""

    kind: Kind
    number: int
    host: str
    port: int
    ranks: Mapping[str, int]  # by the member's name
    seconds: float

    def accept(self, name: str) -> None:
        """In the member's process: leave the old group and join the new one."""
        while joined:
            joined.popitem()[1].close()
        try:
            store = dist.TCPStore(
                self.host, self.port, is_master=False, timeout=timedelta(seconds=self.seconds)
            )
            joined[self.number] = self.join(store, self.ranks[name])
        except (RuntimeError, OSError) as error:
            raise NotArrived(str(error).splitlines()[0]) from error

    def join(self, store: dist.Store, rank: int) -> BroadcastGroup:
        own = dist.PrefixStore(f"weights {self.number}", store)
        size = len(self.ranks) + 1
        return BroadcastGroup(self.kind, own, rank, size, own_address(self.host), self.seconds)


def own_address(other: str) -> str:
    """This host's address on the route to `other`; connecting a datagram socket sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
        way.connect((other, 9))
        address: str = way.getsockname()[0]
        return address


class Broadcast:
    """See `sync.Transport`. A bucket is one collective, which may run until its slot is used again."""

    def __init__(self, host: str, kind: Kind, *, seconds: float = SECONDS) -> None:
        """`host` is this process's address for members."""
        self.host, self.kind, self.seconds = host, kind, seconds
        self.store: dist.TCPStore | None = None
        self.names: Sequence[str] = ()
        self.group: BroadcastGroup | None = None
        self.number = 0
        self.slots: dict[int, tuple[Tensor, Any]] = {}

    def meet(self, crew: Crew) -> None:
        names = [member.name for member in crew.alive]
        if self.group is not None and names == self.names:
            return
        self.leave()
        if self.store is None:
            self.store = dist.TCPStore(self.host, 0, is_master=True, wait_for_workers=False)
        self.number += 1
        invitation = Invitation(
            kind=self.kind,
            number=self.number,
            host=self.host,
            port=self.store.port,
            ranks={name: rank for rank, name in enumerate(names, start=1)},
            seconds=self.seconds,
        )
        crew.order("join", invitation)
        try:
            self.group = invitation.join(self.store, rank=0)
        except RuntimeError:
            self.group = None  # the answers tell which member is missing
        crew.arrived("the first, since the group was not formed,")
        if self.group is None:
            raise NotArrived("the group was not formed")
        self.names = names

    def pack(self, content: Content, slot: int) -> BroadcastBucket:
        assert self.group is not None, "members have met"
        octets, before = self.slots.pop(slot, (None, None))
        if before is not None:
            self.group.wait(before)
        size = sum(len(piece) for _, piece in content)
        if octets is None or len(octets) < size:
            octets = torch.empty(size, dtype=torch.uint8, device=self.group.device)
        torch.cat([piece.to(octets.device) for _, piece in content], out=octets[:size])
        self.slots[slot] = octets, self.group.broadcast(octets[:size])
        pieces = [(piece, len(octets)) for piece, octets in content]
        return BroadcastBucket(number=self.number, pieces=pieces)

    def leave(self) -> None:
        """Leave the group; the next push forms a new one."""
        if self.group is not None:
            self.group.close()
        self.group, self.names, self.slots = None, (), {}


@dataclass(frozen=True, kw_only=True)
class BroadcastBucket:
    """The layout of the next broadcast."""

    number: int
    pieces: Sequence[tuple[BucketPiece, int]]

    def open(self) -> Content:
        group = joined.get(self.number)
        if group is None:
            raise NotArrived("this engine is not in the group")
        sizes = [size for _, size in self.pieces]
        octets = torch.empty(sum(sizes), dtype=torch.uint8, device=group.device)
        group.wait(group.broadcast(octets))
        return [*zip((piece for piece, _ in self.pieces), octets.split(sizes), strict=True)]
