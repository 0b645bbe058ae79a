"""Mixtures of several sources, one list to draw from: problems, conversations or preferences.

    mix([gsm8k, math], [gsm8k_entries, math_entries], prompt_limit(64)).datasets -> ["gsm8k", "gsm8k", …, "math"]

Entries that are too long are an error, or dropped and counted, as each source says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol

from foresail.data.length_limit import Entry, LengthLimit
from foresail.recipe.tables.values import TooLong


class SourceSettings(Protocol):
    """The fields of a recipe's source that a mixture needs."""

    @property
    def source(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def too_long(self) -> TooLong: ...


@dataclass(frozen=True, kw_only=True)
class Mixture(Generic[Entry]):
    """Entries, the source of each, and by source how many were too long."""

    entries: list[Entry] = field(default_factory=list)
    datasets: list[str] = field(default_factory=list)
    dropped: dict[str, int] = field(default_factory=dict)

    def add(self, label: str, entries: Sequence[Entry]) -> None:
        self.entries.extend(entries)
        self.datasets.extend([label] * len(entries))


def mix(
    sources: Sequence[SourceSettings], encoded: Sequence[Sequence[Entry]], limit: LengthLimit
) -> Mixture[Entry]:
    mixture = Mixture[Entry]()
    for source, entries in zip(sources, encoded, strict=True):
        fitting = limit.keep(entries, source.too_long, source.source)
        mixture.add(source.label, fitting)
        count(mixture.dropped, source.label, len(entries) - len(fitting))
    return mixture


def count(counts: dict[str, int], label: str, number: int) -> None:
    if number:
        counts[label] = counts.get(label, 0) + number
