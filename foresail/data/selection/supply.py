"""The strata of a recipe's sources and levels: their problems, weights and ends.

One source, or several without weights and epochs, are one stratum in the data's own order. With a mix of levels,
each level is a stratum. Otherwise every source is a stratum, or each of its levels is one, with the source's weight
times the level's.

Problems are drawn by `LaunchOrder`, which picks none twice in a step; conversations by `draw`, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from foresail.data.selection.launch_order import WHOLE, choose
from foresail.data.selection.order import problem_at, uniforms
from foresail.data.selection.strata import Stratum
from foresail.recipe.tables.sources import Conversations, Preferences, ProblemSource


@dataclass(frozen=True, kw_only=True)
class Share:
    """Problems drawn in one order: their indices, all and by level. The name is empty for all sources together."""

    name: str
    weight: float
    epochs: int | None
    members: Sequence[int]
    levels: Mapping[int, Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class Supply:
    """All problems, in shares that are drawn from by weight."""

    shares: tuple[Share, ...]

    def strata(
        self, mix: Sequence[float] | None, *, position: int, places: Mapping[str, int]
    ) -> dict[str, Stratum]:
        """By the names that their places have in a checkpoint: "gsm8k", "3", "gsm8k/3"; of the whole: `position`.

        Levels of weight 0 are not drawn, and problems without a level are in no level's stratum.
        """
        strata = {}
        for share in self.shares:
            for name, members, weight in choices(share, mix):
                place = position if name == WHOLE else places.get(name, 0)
                strata[name] = Stratum(members=members, weight=weight, place=place, epochs=share.epochs)
        return strata


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
    """The supply of all entries, from the source's name and the level of each."""
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
    members_of: dict[int, list[int]] = {}
    for index in members:
        if (level := levels[index]) is not None:
            members_of.setdefault(level, []).append(index)
    return members_of


def draw(
    strata: Mapping[str, Stratum], count: int, *, seed: int, position: int
) -> tuple[list[int], dict[str, int]]:
    """The next `count` entries, and each stratum's place after them; fewer where all strata have ended.

    A pure function of the strata, the seed and the position, which counts all that was drawn before.
    """
    places = {name: stratum.place for name, stratum in strata.items()}
    drawn: list[int] = []
    while len(drawn) < count:
        open_ones = [name for name, stratum in strata.items() if not ended(stratum, places[name])]
        if not open_ones:
            break
        choice = uniforms("source", seed, position + len(drawn))[0]
        name = open_ones[choose([strata[name].weight for name in open_ones], choice)]
        members = strata[name].members
        drawn.append(members[problem_at(places[name], len(members), seed)])
        places[name] += 1
    return drawn, places


def ended(stratum: Stratum, place: int) -> bool:
    return stratum.epochs is not None and place >= stratum.epochs * len(stratum.members)
