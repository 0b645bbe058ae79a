"""From a recipe's sources and levels to decks: which there are, how much is drawn from each, where each ends.

One source, or several without weights and epochs, are one deck in the data's own order, or with a mix one deck a
level. Else every source has a deck of its own, or one a level: its weight is the source's times the level's.

Problems are drawn by `Lineup`, which picks none twice in a step; conversations by `draw`, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foresail.data.selection.choice import WHOLE, choose
from foresail.data.selection.order import problem_at, uniforms
from foresail.data.selection.strata import Deck
from foresail.recipe.tables.sources import Conversations, Preferences, ProblemSource


@dataclass(frozen=True, kw_only=True)
class Share:
    """Problems drawn in one order: their indices, all and by level. The name is empty where no source is apart."""

    name: str
    weight: float
    epochs: int | None
    members: Sequence[int]
    levels: Mapping[int, Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class Supply:
    """All problems, in shares that are drawn from by weight."""

    shares: tuple[Share, ...]

    def decks(
        self, mix: Sequence[float] | None, *, position: int, places: Mapping[str, int]
    ) -> dict[str, Deck]:
        """By the names that their places have in a checkpoint: "gsm8k", "3", "gsm8k/3"; of the whole: `position`.

        Levels of weight 0 are not drawn, and problems without a level are in no level's deck.
        """
        found = {}
        for share in self.shares:
            for name, members, weight in choices(share, mix):
                place = position if name == WHOLE else places.get(name, 0)
                found[name] = Deck(members=members, weight=weight, place=place, epochs=share.epochs)
        return found


def choices(share: Share, mix: Sequence[float] | None) -> list[tuple[str, Sequence[int], float]]:
    if mix is None:
        return [(share.name or WHOLE, share.members, share.weight)]
    prefix = f"{share.name}/" if share.name else ""
    return [
        (f"{prefix}{level}", share.levels[level], share.weight * weight)
        for level, weight in enumerate(mix, start=1)
        if weight and share.levels.get(level)
    ]


def open_supply(
    datasets: Sequence[str],
    levels: Sequence[int | None],
    sources: Sequence[ProblemSource] | Sequence[Conversations] | Sequence[Preferences],
) -> Supply:
    """Of all that is drawn from: by the name of its source, and by its level."""
    if len(sources) == 1 or all(source.weight is None and source.epochs is None for source in sources):
        epochs = sources[0].epochs if len(sources) == 1 else None
        return Supply(shares=(share_of(range(len(datasets)), levels, epochs=epochs),))
    members: dict[str, list[int]] = {source.label: [] for source in sources}
    for index, name in enumerate(datasets):
        members[name].append(index)
    return Supply(
        shares=tuple(
            share_of(
                members[source.label],
                levels,
                name=source.label,
                weight=source.weight or len(members[source.label]),
                epochs=source.epochs,
            )
            for source in sources
        )
    )


def share_of(
    members: Sequence[int],
    levels: Sequence[int | None],
    *,
    name: str = "",
    weight: float = 1.0,
    epochs: int | None = None,
) -> Share:
    return Share(name=name, weight=weight, epochs=epochs, members=members, levels=by_level(members, levels))


def by_level(members: Sequence[int], levels: Sequence[int | None]) -> dict[int, list[int]]:
    """by_level(range(4), [2, 1, None, 2]) -> {2: [0, 3], 1: [1]}."""
    found: dict[int, list[int]] = {}
    for index in members:
        if (level := levels[index]) is not None:
            found.setdefault(level, []).append(index)
    return found


def draw(
    decks: Mapping[str, Deck], count: int, *, seed: int, position: int
) -> tuple[list[int], dict[str, int]]:
    """The next so many, and where each deck stands after them; fewer where all decks have ended.

    A pure function of the decks, the seed and the position, which counts all that was drawn before.
    """
    places = {name: deck.place for name, deck in decks.items()}
    drawn: list[int] = []
    while len(drawn) < count:
        open_ones = [name for name, deck in decks.items() if not ended(deck, places[name])]
        if not open_ones:
            break
        choice = uniforms("source", seed, position + len(drawn))[0]
        name = open_ones[choose([decks[name].weight for name in open_ones], choice)]
        members = decks[name].members
        drawn.append(members[problem_at(places[name], len(members), seed)])
        places[name] += 1
    return drawn, places


def ended(deck: Deck, place: int) -> bool:
    return deck.epochs is not None and place >= deck.epochs * len(deck.members)
