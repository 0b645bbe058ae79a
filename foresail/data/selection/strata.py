"""Decks of problems: all of them, or those of a source, of a difficulty level, or of both. Each has its own order.

The order is fresh in every pass and a pure function of the seed, so a deck's state is one integer, its place. A
stage of a curriculum that changes the weights of levels leaves every deck where it was: no problem is skipped or
comes twice in a pass because of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from foresail.data.selection.order import problem_at, uniforms


@dataclass(frozen=True, kw_only=True)
class Deck:
    """Some problems by their indices, the share of launches they get, and the place in their order.

    With `epochs` nothing is picked after so many passes.
    """

    members: Sequence[int]
    weight: float = 1.0
    place: int = 0
    epochs: int | None = None


class Walk:
    """One step's way through a deck: `pick` gives each problem once, those set aside after all others.

    `taken` is shared with whoever else picks in the step. A problem that is `aside` is passed over, but for a
    `chance` that belongs to its place in the deck.
    """

    def __init__(
        self, name: str, deck: Deck, *, seed: int, taken: set[int], aside: set[int], chance: float
    ) -> None:
        self.name, self.deck, self.place, self.seed = name, deck, deck.place, seed
        self.taken, self.aside, self.chance = taken, aside, chance
        self.num_left = len(deck.members) - count_among(deck.members, taken)
        self.num_wanted = len(deck.members) - count_among(deck.members, taken | aside)

    def pick(self) -> int:
        assert self.num_left, f"deck {self.name} is empty"
        members = self.deck.members
        while True:
            picked = members[problem_at(self.place, len(members), self.seed)]
            here = self.place
            self.place += 1
            # A step that crosses into the next pass over the deck may meet what it has picked already.
            if picked in self.taken:
                continue
            if picked not in self.aside:
                self.num_wanted -= 1
            elif self.num_wanted and uniforms("window", self.seed, self.name, here)[0] >= self.chance:
                continue
            self.taken.add(picked)
            self.num_left -= 1
            return picked


class BoundedWalk:
    """The way through a deck that ends after its last pass: what can be picked in the step is known beforehand.

    What the window passed over in the last pass does not come again.
    """

    def __init__(
        self, name: str, deck: Deck, *, seed: int, taken: set[int], aside: set[int], chance: float
    ) -> None:
        assert deck.epochs is not None
        self.name, self.deck, self.place, self.taken = name, deck, deck.place, taken
        walk = Walk(name, deck, seed=seed, taken={*taken}, aside=aside, chance=chance)
        end = deck.epochs * len(deck.members)
        self.ahead: deque[tuple[int, int]] = deque()  # problems, and the places after them
        while walk.num_left and walk.place < end:
            picked = walk.pick()
            if walk.place <= end:
                self.ahead.append((picked, walk.place))

    @property
    def num_left(self) -> int:
        return len(self.ahead)

    def pick(self) -> int:
        picked, self.place = self.ahead.popleft()
        self.taken.add(picked)
        return picked


def open_walk(
    name: str, deck: Deck, *, seed: int, taken: set[int], aside: set[int], chance: float
) -> Walk | BoundedWalk:
    kind = Walk if deck.epochs is None else BoundedWalk
    return kind(name, deck, seed=seed, taken=taken, aside=aside, chance=chance)


def count_among(members: Sequence[int], some: set[int]) -> int:
    return len(some.intersection(members)) if some else 0
