"""The tokens of simulated requests: sequences as long as real ones, without memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import repeat
from typing import Generic, TypeVar, overload

from foresail.engine.request import Completion
from foresail.records import Sample

Value = TypeVar("Value")
SAMPLES = 1 << 16  # more than a group has


def ids_of(key: int, sample: int, count: int) -> range:
    """The first tokens of a response, from the noise key; the first encodes the sample."""
    start = key - key % SAMPLES + sample
    return range(start, start + count)


def sample_of(ids: Sequence[int]) -> int:
    """sample_of(ids_of(key, 7, 100)) -> 7."""
    return ids[0] % SAMPLES


class Repeated(Sequence[Value], Generic[Value]):
    """Repeated(0.0, 1000) is [0.0] * 1000."""

    def __init__(self, value: Value, count: int) -> None:
        self._value, self._count = value, count

    def __len__(self) -> int:
        return self._count

    def __add__(self, other: Sequence[Value]) -> Repeated[Value]:
        """A sequence with the length of both and this one's value."""
        return Repeated(self._value, self._count + len(other))

    def __iter__(self) -> Iterator[Value]:
        return repeat(self._value, self._count)

    @overload
    def __getitem__(self, place: int) -> Value: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Value]: ...

    def __getitem__(self, place: int | slice) -> Value | Sequence[Value]:
        if isinstance(place, slice):
            return Repeated(self._value, len(range(self._count)[place]))
        range(self._count)[place]  # or an IndexError
        return self._value


def to_weightless_sample(*turns: Completion) -> Sample:
    """The generated part as a sample without lists, for a judge."""
    first, last = turns[0].ids[0], turns[-1]
    count = sum(len(turn.ids) for turn in turns)
    return Sample(
        ids=range(first, first + count),  # type: ignore[arg-type]
        loss_mask=Repeated(1, count),  # type: ignore[arg-type]
        logprobs=Repeated(0.0, count),  # type: ignore[arg-type]
        versions=Repeated(last.versions[-1], count),  # type: ignore[arg-type]
        turns=Repeated(0, count),  # type: ignore[arg-type]
        finish=last.finish,
    )
