"""Loads a file of preferences without the rows that teach nothing, which are counted by reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Generic, TypeVar

from foresail.data.rows import Row, read_rows

Entry = TypeVar("Entry")


@dataclass(frozen=True, kw_only=True)
class LoadedEntries(Generic[Entry]):
    """Pairs or judged answers of a file with the place of each, and how many teach nothing, by the reason."""

    entries: list[Entry]
    places: list[str]
    unusable: Mapping[str, int] = field(default_factory=dict)


def load_entries(
    source: str | Path,
    limit: int | None,
    read: Callable[[Row], Sequence[Entry]],
    why_unusable: Callable[[Entry], str | None],
    unit: str,
) -> LoadedEntries[Entry]:
    """`read` gives the entries of a row; `unit` is an entry's name in errors."""
    entries: list[Entry] = []
    places: list[str] = []
    unusable: Counter[str] = Counter()
    for row in islice(read_rows(Path(source)), limit):
        for entry in read(row):
            if (reason := why_unusable(entry)) is not None:
                unusable[reason] += 1
            else:
                entries.append(entry)
                places.append(row.place)
    if not entries:
        reasons = ", ".join(f"{count} {reason}" for reason, count in unusable.items())
        raise ValueError(f"{source} has no {unit} to learn from: {reasons}")
    return LoadedEntries(entries=entries, places=places, unusable=unusable)
