"""How a trainer's weights reach engines in other processes: versioned, and proven tensor by tensor.

    same memory     an engine in the trainer's process: nothing to do (`native.py`)
    shared memory   engines on this machine read the trainer's own tensors: nothing to copy (`SharedWeights`)
    copies          engines with weights of their own get those that changed, in buckets (`CopiedWeights`): in the
                    same process as they are (`HandedOver`), else through Ray's object store (`ObjectTransport`) or
                    by a broadcast (`Broadcast`)

Either way every engine answers with checksums of what lies in its memory, and the trainer compares them with its
own: another tensor, or none in time, stops the run with an error that names it. The source is an iterator over
whole tensors, so that a sharded trainer can gather one at a time.

Buckets overlap: the next is filled, and its tensors' checksums taken, while engines load the last. Nothing is sent
while requests are under way, for they belong to the old weights.
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
SLOTS = 2  # buckets under way: one is loaded while the next is filled
GB = 10**9


class WeightsDiffer(RunStopped):
    """An engine has other weights than the trainer."""


class WeightsLate(RunStopped):
    """An engine did not say in time that it has the weights."""


class Member(Protocol):
    """An engine elsewhere; each call may find it gone: `InstanceLost`."""

    name: str

    def order(self, kind: str, content: Any) -> None: ...

    def answer(self, seconds: float) -> Any:
        """What it answers to its oldest order without one; `NoAnswer` after so long."""


class Transport(Protocol):
    """Puts a bucket where all members can open it. Where it breaks: `NotArrived`."""

    def meet(self, crew: Crew) -> None:
        """Before the first bucket: these are the members."""

    def pack(self, content: Content, slot: int) -> Bucket:
        """The slot's last bucket was loaded by all, and may be overwritten."""

    def leave(self) -> None:
        """It broke, or will not be used any more."""


@dataclass(frozen=True)
class HandedOver:
    """A bucket, and the transport of it, in one process."""

    content: Content = ()

    def meet(self, crew: Crew) -> None: ...

    def pack(self, content: Content, slot: int) -> HandedOver:
        return HandedOver(content)

    def leave(self) -> None: ...

    def open(self) -> Content:
        return self.content


class WeightSync(Protocol):
    def push(self, version: int, members: Sequence[Member]) -> list[str]:
        """All members have the trainer's weights, called `version`, when it returns; but for those found gone."""

    def take_figures(self) -> dict[str, float]: ...


class SharedWeights:
    """Members read the trainer's own memory: they only prove it."""

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
    """Members have copies: each tensor that one of them lacks is sent to all.

    Tensors, one after the other, of which `unit` is the same are sent together, or not at all.
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
        self.loaded: dict[str, dict[str, int]] = {}  # member -> checksums of what it has, as it said itself
        self.tally = PushFigures()

    def push(self, version: int, members: Sequence[Member]) -> list[str]:
        with self.tally:
            crew, sums = Crew(members), None
            # until it is proved what they have, they count as having nothing
            known = [self.loaded.pop(member.name, {}) for member in members]
            while sums is None and crew.alive:
                sums, known = self._attempt(version, crew, known), [{}]
        self.loaded |= {member.name: sums or {} for member in crew.alive}
        return crew.lost

    def _attempt(self, version: int, crew: Crew, known: Sequence[Mapping[str, int]]) -> dict[str, int] | None:
        """The checksums of what all have; None where a loss broke the transport: then again, for the others."""
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
        for _, unit in groupby(self.source(), key=lambda named: self.unit(named[0])):
            tensors = dict(unit)
            ours = {name: tensor_checksum(tensor) for name, tensor in tensors.items()}
            sums |= ours
            if any(loaded.get(name) != ours[name] for loaded in known for name in ours):
                changed.extend(ours)
                yield from tensors.items()

    def take_figures(self) -> dict[str, float]:
        return self.tally.take()


class Crew:
    """Members of one push: those that are found gone leave it, the others go on."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.alive, self.lost = [*members], list[str]()

    def order(self, kind: str, content: Any) -> None:
        for member in [*self.alive]:
            try:
                member.order(kind, content)
            except InstanceLost:
                self._drop(member)

    def answers(self, tensor: str) -> list[tuple[Member, Any]]:
        """One from each; `tensor` is the last that was sent to them."""
        answers = []
        for member in [*self.alive]:
            try:
                answers.append((member, member.answer(SYNC_SECONDS)))
            except NoAnswer as silent:
                raise WeightsLate(
                    f"instance {member.name} did not confirm the weights up to {tensor} within {SYNC_SECONDS:g} s; "
                    "see its log for what it does, and resume the run"
                ) from silent
            except InstanceLost:
                self._drop(member)
        return answers

    def arrived(self, tensor: str) -> None:
        """All that are alive have it, else `NotArrived`, once each has answered."""
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
    """Checksums of what members have against the trainer's, by tensor."""
    for member, theirs in crew.answers(next(reversed(ours), "weights")):
        for name in ours.keys() | theirs.keys():
            if ours.get(name) != theirs.get(name):
                reported, own = (f"{sums[name]:016x}" if name in sums else "none" for sums in (theirs, ours))
                raise WeightsDiffer(
                    f"{name} has checksum {reported} on instance {member.name} and {own} in the trainer, both "
                    f"called version {version}; shared memory was not updated in place, or it did not arrive"
                )


class PushFigures:
    """Seconds and bytes of pushes since the last look."""

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
