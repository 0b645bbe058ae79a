"""Strata of problems: all of them, or those of a source, of a difficulty level, or of both. Each has its own order.

The order is new in every pass and a pure function of the seed, so a stratum's state is one integer, its place. When
a curriculum changes the weights of levels, places stay: no problem is skipped or comes twice in a pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from foresail.data.selection.order import problem_at, uniforms


@dataclass(frozen=True, kw_only=True)
class Stratum:
    """Some problems by their indices, the share of launches they get, and the place in their order.

    With `epochs` nothing is picked after so many passes.
    """

    members: Sequence[int]
    weight: float = 1.0
    place: int = 0
    epochs: int | None = None


class StratumIterator:
    """Picks from a stratum during one step: each problem once, the skipped ones after all others.

    `taken` is shared by all iterators of the step. A `skipped` problem is passed over, except with the probability
    `chance`, drawn by its place in the stratum.
    """

    def __init__(
        self, name: str, stratum: Stratum, *, seed: int, taken: set[int], skipped: set[int], chance: float
    ) -> None:
        self.name, self.stratum, self.place, self.seed = name, stratum, stratum.place, seed
        self.taken, self.skipped, self.chance = taken, skipped, chance
        self.num_left = len(stratum.members) - count_among(stratum.members, taken)
        self.num_wanted = len(stratum.members) - count_among(stratum.members, taken | skipped)

    def pick(self) -> int:
        assert self.num_left, f"stratum {self.name} is empty"
        members = self.stratum.members
        while True:
            picked = members[problem_at(self.place, len(members), self.seed)]
            here = self.place
            self.place += 1
            # A step that crosses into the next pass over the stratum may meet what it has picked already.
            if picked in self.taken:
                continue
            if picked not in self.skipped:
                self.num_wanted -= 1
            elif self.num_wanted and uniforms("window", self.seed, self.name, here)[0] >= self.chance:
                continue
            self.taken.add(picked)
            self.num_left -= 1
            return picked


class BoundedStratumIterator:
    """Picks from a stratum that ends after its last pass.

    What the window skipped in the last pass does not come again.
    """

    def __init__(
        self, name: str, stratum: Stratum, *, seed: int, taken: set[int], skipped: set[int], chance: float
    ) -> None:
        assert stratum.epochs is not None
        self.name, self.stratum, self.place, self.taken = name, stratum, stratum.place, taken
        iterator = StratumIterator(name, stratum, seed=seed, taken={*taken}, skipped=skipped, chance=chance)
        end = stratum.epochs * len(stratum.members)
        self.ahead: deque[tuple[int, int]] = deque()  # problems, and the places after them
        while iterator.num_left and iterator.place < end:
            picked = iterator.pick()
            if iterator.place <= end:
                self.ahead.append((picked, iterator.place))

    @property
    def num_left(self) -> int:
        return len(self.ahead)

    def pick(self) -> int:
        picked, self.place = self.ahead.popleft()
        self.taken.add(picked)
        return picked


def open_stratum(
    name: str, stratum: Stratum, *, seed: int, taken: set[int], skipped: set[int], chance: float
) -> StratumIterator | BoundedStratumIterator:
    kind = StratumIterator if stratum.epochs is None else BoundedStratumIterator
    return kind(name, stratum, seed=seed, taken=taken, skipped=skipped, chance=chance)


def count_among(members: Sequence[int], some: set[int]) -> int:
    return len(some.intersection(members)) if some else 0
