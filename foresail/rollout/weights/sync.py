"""Sends a trainer's weights to engines in other processes, proven by a checksum per tensor.

    same memory     an engine in the trainer's process: nothing to do (`native.py`)
    shared memory   engines on this machine read the trainer's own tensors: nothing to copy (`SharedWeights`)
    copies          engines with their own weights get those that changed, in buckets (`CopiedWeights`): directly in
                    the same process (`HandedOver`), else through Ray's object store (`ObjectTransport`) or by a
                    broadcast (`Broadcast`)

Every engine answers with checksums of its memory, and the trainer compares them with its own: a different tensor,
or a missing answer, stops the run with an error that names it. The source is an iterator over whole tensors, so
that a sharded trainer can gather one at a time.

Buckets overlap: the next is filled, and its tensors' checksums taken, while engines load the last. Nothing is sent
while requests run, since they belong to the old weights.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol

from torch import Tensor

from foresail.model.weights import tensor_checksum
from foresail.records import RunStopped
from foresail.rollout.instance import InstanceLost, NoAnswer
from foresail.rollout.weights.buckets import Bucket, Content, Named, NotArrived, fill, num_bytes

SYNC_SECONDS = 600.0  # for an engine to load a bucket, or to read its weights
BUCKET_BYTES = 64 * 2**20
SLOTS = 2  # concurrent buckets: one is loaded while the next is filled
GB = 10**9


class WeightsDiffer(RunStopped):
    """An engine has other weights than the trainer."""


class WeightsLate(RunStopped):
    """An engine did not confirm the weights in time."""


class Member(Protocol):
    """An engine in another process; each call may raise `InstanceLost`."""

    name: str

    def order(self, kind: str, content: Any) -> None: ...

    def answer(self, seconds: float) -> Any:
        """The answer to its oldest open order; raises `NoAnswer` after `seconds`."""


class Transport(Protocol):
    """Makes a bucket available to all members; raises `NotArrived` if it breaks."""

    def meet(self, crew: Crew) -> None:
        """Connect to these members before the first bucket."""

    def pack(self, content: Content, slot: int) -> Bucket:
        """Pack a bucket; all members have loaded the slot's last one, which may be overwritten."""

    def leave(self) -> None:
        """Disconnect after a failure, or at the end."""


@dataclass(frozen=True)
class HandedOver:
    """A bucket and its transport within one process."""

    content: Content = ()

    def meet(self, crew: Crew) -> None: ...

    def pack(self, content: Content, slot: int) -> HandedOver:
        return HandedOver(content)

    def leave(self) -> None: ...

    def open(self) -> Content:
        return self.content


class WeightSync(Protocol):
    def push(self, version: int, members: Sequence[Member]) -> list[str]:
        """Give all members the trainer's weights as `version`; returns the names of lost members."""

    def take_figures(self) -> dict[str, float]: ...


class SharedWeights:
    """Members read the trainer's memory; a push only compares checksums."""

    def __init__(self, source: Callable[[], Named]) -> None:
        self.source = source
        self.tally = PushFigures()

    def push(self, version: int, members: Sequence[Member]) -> list[str]:
        with self.tally:
            crew = Crew(members)
            crew.order("weights", (version, None))
            compare(crew, version, {name: tensor_checksum(tensor) for name, tensor in self.source()})
        return crew.lost

    def take_figures(self) -> dict[str, float]:
        return self.tally.take()


class CopiedWeights:
    """Members have copies: a tensor that one of them lacks is sent to all.

    Consecutive tensors with the same `unit` are sent together, or not at all.
    """

    def __init__(
        self,
        source: Callable[[], Named],
        transport: Transport,
        *,
        unit: Callable[[str], str] = str,
        bucket_bytes: int = BUCKET_BYTES,
    ) -> None:
        self.source, self.transport, self.unit, self.bucket_bytes = source, transport, unit, bucket_bytes
        self.loaded: dict[str, dict[str, int]] = {}  # member -> the checksums it reported
        self.tally = PushFigures()

    def push(self, version: int, members: Sequence[Member]) -> list[str]:
        with self.tally:
            crew, sums = Crew(members), None
            # until proven, members count as having nothing
            known = [self.loaded.pop(member.name, {}) for member in members]
            while sums is None and crew.alive:
                sums, known = self._attempt(version, crew, known), [{}]
        self.loaded |= {member.name: sums or {} for member in crew.alive}
        return crew.lost

    def _attempt(self, version: int, crew: Crew, known: Sequence[Mapping[str, int]]) -> dict[str, int] | None:
        """The checksums of all; None if the loss of a member broke the transport, to try again with the others."""
        lost, under_way = len(crew.lost), deque[str]()
        try:
            sums = self._send(version, crew, known, under_way)
        except NotArrived as broken:
            self.transport.leave()
            for last_tensor in under_way:
                crew.answers(last_tensor)
            if len(crew.lost) == lost:
                raise WeightsLate(
                    f"weights did not reach all of {', '.join(crew.names)} though none of them is gone: {broken}; "
                    "see whether they reach the trainer's host on all ports, and resume the run with "
                    'cluster.transport = "objects"'
                ) from broken
            return None
        return sums

    def _send(
        self, version: int, crew: Crew, known: Sequence[Mapping[str, int]], under_way: deque[str]
    ) -> dict[str, int]:
        sums, changed = dict[str, int](), list[str]()
        crew.order("begin", None)
        crew.answers("the first")
        self.transport.meet(crew)
        with closing(self._missing(known, sums, changed)) as missing:
            for number, content in enumerate(fill(missing, self.bucket_bytes)):
                if len(under_way) == SLOTS:
                    crew.arrived(under_way.popleft())
                crew.order("bucket", self.transport.pack(content, number % SLOTS))
                under_way.append(content[-1][0].name)
                self.tally.sent += num_bytes(content)
        while under_way:
            crew.arrived(under_way.popleft())
        crew.order("weights", (version, changed))
        compare(crew, version, {name: sums[name] for name in changed})
        return sums

    def _missing(
        self, known: Sequence[Mapping[str, int]], sums: dict[str, int], changed: list[str]
    ) -> Generator[tuple[str, Tensor], None, None]:
        for _, unit in groupby(self.source(), key=lambda item: self.unit(item[0])):
            tensors = dict(unit)
            ours = {name: tensor_checksum(tensor) for name, tensor in tensors.items()}
            sums |= ours
            if any(loaded.get(name) != ours[name] for loaded in known for name in ours):
                changed.extend(ours)
                yield from tensors.items()

    def take_figures(self) -> dict[str, float]:
        return self.tally.take()


class Crew:
    """The members of one push, without those that are lost during it."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.alive, self.lost = [*members], list[str]()

    def order(self, kind: str, content: Any) -> None:
        for member in [*self.alive]:
            try:
                member.order(kind, content)
            except InstanceLost:
                self._drop(member)

    def answers(self, tensor: str) -> list[tuple[Member, Any]]:
        """One answer from each; `tensor` is the last that was sent."""
        answers = []
        for member in [*self.alive]:
            try:
                answers.append((member, member.answer(SYNC_SECONDS)))
            except NoAnswer as error:
                raise WeightsLate(
                    f"instance {member.name} did not confirm the weights up to {tensor} within {SYNC_SECONDS:g} s; "
                    "see its log for what it does, and resume the run"
                ) from error
            except InstanceLost:
                self._drop(member)
        return answers

    def arrived(self, tensor: str) -> None:
        """Wait for all answers; raises `NotArrived` if a bucket did not arrive."""
        for _, answer in self.answers(tensor):
            if isinstance(answer, NotArrived):
                raise answer

    @property
    def names(self) -> list[str]:
        return [member.name for member in self.alive]

    def _drop(self, member: Member) -> None:
        self.alive.remove(member)
        self.lost.append(member.name)


def compare(crew: Crew, version: int, ours: dict[str, int]) -> None:
    """Compare the members' checksums with the trainer's, tensor by tensor."""
    for member, theirs in crew.answers(next(reversed(ours), "weights")):
        for name in ours.keys() | theirs.keys():
            if ours.get(name) != theirs.get(name):
                reported, own = (f"{sums[name]:016x}" if name in sums else "none" for sums in (theirs, ours))
                raise WeightsDiffer(
                    f"{name} has checksum {reported} on instance {member.name} and {own} in the trainer, both "
                    f"called version {version}; shared memory was not updated in place, or it did not arrive"
                )


class PushFigures:
    """Seconds and bytes of pushes since the last `take`."""

    def __init__(self) -> None:
        self.seconds, self.sent, self.pushes = 0.0, 0, 0

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self.start
        self.pushes += 1

    def take(self) -> dict[str, float]:
        if not self.pushes:
            return {}
        figures = {"timing_s/weight_sync": self.seconds, "perf/weight_sync_gb": self.sent / GB}
        if self.sent:
            figures["perf/weight_sync_s_per_gb"] = self.seconds / (self.sent / GB)
        self.seconds, self.sent, self.pushes = 0.0, 0, 0
        return figures
