"""The most frequent names of many, in bounded space (Misra and Gries): counts that add up over files.

    tops = Tops(room=2); for name in "aaabbc": tops.add(name)
    tops.counts -> {"a": 2, "b": 1}, tops.missing -> 1          # a count is too low by at most `missing`

With no more names than there is room for, all counts are exact. `missing` is at most the sum of all counts, divided
by the room.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Tops:
    room: int
    counts: dict[str, int] = field(default_factory=dict)
    missing: int = 0

    def add(self, name: str, count: int = 1) -> None:
        self.counts[name] = self.counts.get(name, 0) + count
        if len(self.counts) > 2 * self.room:
            self.shrink()

    def merge(self, other: Tops) -> None:
        for name, count in other.counts.items():
            self.counts[name] = self.counts.get(name, 0) + count
        self.missing += other.missing
        self.shrink()

    def shrink(self) -> None:
        """Take from every count what the first name without room has."""
        if len(self.counts) <= self.room:
            return
        spare = sorted(self.counts.values(), reverse=True)[self.room]
        self.counts = {name: count - spare for name, count in self.counts.items() if count > spare}
        self.missing += spare

    def ranked(self) -> list[tuple[str, int]]:
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))

    def as_json(self) -> dict[str, Any]:
        self.shrink()
        return {"counts": dict(self.ranked()), "missing": self.missing}

    @classmethod
    def from_json(cls, room: int, row: dict[str, Any]) -> Tops:
        return cls(room, dict(row["counts"]), row["missing"])
