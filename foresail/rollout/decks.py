"""Decks of problems: all of them, or those of one difficulty level. Each has an order and a place of its own.

The order is fresh in every pass and a pure function of the seed, so a deck's state is one integer. A stage of a
curriculum that changes the weights of levels leaves every deck where it was: no problem is skipped or comes
twice in a pass because of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from foresail.data.order import problem_at
from foresail.rollout.uniforms import uniforms


@dataclass(frozen=True, kw_only=True)
class Deck:
    """Some problems by their indices, the share of launches they get, and the place in their order."""

    members: Sequence[int]
    weight: float = 1.0
    place: int = 0


@dataclass(frozen=True, kw_only=True)
class Mix:
    """The decks of difficulty levels 1, 2, …, and their weights in a stage. Levels of weight 0 are not drawn.

    `members` has the problems of each level, `places` how far its deck was drawn, both by level; problems
    without a level are in no deck.
    """

    weights: Sequence[float]
    members: Mapping[int, Sequence[int]]
    places: Mapping[str, int] = field(default_factory=dict)  # JSON has text for keys

    def decks(self) -> dict[str, Deck]:
        return {
            str(level): Deck(members=self.members[level], weight=weight, place=self.places.get(str(level), 0))
            for level, weight in enumerate(self.weights, start=1)
            if weight and self.members.get(level)
        }


def by_level(levels: Sequence[int | None]) -> dict[int, list[int]]:
    """by_level([2, 1, None, 2]) -> {2: [0, 3], 1: [1]}."""
    members: dict[int, list[int]] = {}
    for index, level in enumerate(levels):
        if level is not None:
            members.setdefault(level, []).append(index)
    return members


class Walk:
    """One step's way through a deck: `draw` gives each problem once, those set aside after all others.

    `taken` is shared with whoever else draws in the step. A problem that is `aside` is passed over, but for a
    `chance` that belongs to its place in the deck.
    """

    def __init__(
        self, name: str, deck: Deck, *, seed: int, taken: set[int], aside: set[int], chance: float
    ) -> None:
        self.name, self.deck, self.place, self.seed = name, deck, deck.place, seed
        self.taken, self.aside, self.chance = taken, aside, chance
        self.num_left = len(deck.members) - count_among(deck.members, taken)
        self.num_wanted = len(deck.members) - count_among(deck.members, taken | aside)

    def draw(self) -> int:
        assert self.num_left, f"deck {self.name} is empty"
        members = self.deck.members
        while True:
            picked = members[problem_at(self.place, len(members), self.seed)]
            here = self.place
            self.place += 1
            # A step that crosses into the next pass over the deck may meet what it has drawn already.
            if picked in self.taken:
                continue
            if picked not in self.aside:
                self.num_wanted -= 1
            elif self.num_wanted and uniforms("window", self.seed, self.name, here)[0] >= self.chance:
                continue
            self.taken.add(picked)
            self.num_left -= 1
            return picked


def count_among(members: Sequence[int], some: set[int]) -> int:
    return len(some.intersection(members)) if some else 0
