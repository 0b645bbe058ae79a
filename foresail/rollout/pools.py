"""Which problem a launch draws: the data's order or a mix of levels, a window over it, the easy pool beside it.

Problems that every sample solved leave the data's order for the easy pool. A launch takes from the pool with
probability alpha, so that what was learned is not forgotten; one that is no longer solved goes back. Other
launches take the next problem of the data, or of a difficulty level drawn by its weight (`decks.py`), and pass
over those outside the window (`pass_window.py`).

A step's problems are a pure function of (pool, window, places, seed, step, launch). Places, window and pool
after a step depend on the step's prefix only (see `controller.Closing`), so a run that is killed and resumed, or
that launched more or fewer groups beyond the prefix, sees the same problems.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Self

from foresail.rollout.controller import Outcome
from foresail.rollout.decks import Deck, Mix, Walk
from foresail.rollout.pass_window import PassWindow
from foresail.rollout.uniforms import uniforms


@dataclass(frozen=True, kw_only=True)
class EasyPool:
    """Ids of solved problems, in the order in which they came in."""

    alpha: float
    problems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha {self.alpha} is no probability; use one from 0 to 1, e.g. 0.1")

    def after(self, outcomes: Mapping[str, Outcome]) -> Self:
        """The pool after a step, given what became of each problem of its prefix, in launch order.

        A group that could not be graded says nothing: its problem stays where it was.
        """
        easy = dict.fromkeys(self.problems)
        for problem, outcome in outcomes.items():
            if outcome.solved:
                easy[problem] = None
            elif not outcome.failed:
                easy.pop(problem, None)
        return replace(self, problems=tuple(easy))

    def state(self) -> list[str]:
        """For a checkpoint's JSON; `EasyPool(alpha=…, problems=tuple(state))` is this pool again."""
        return list(self.problems)


WHOLE = "all"  # the deck of a stage without a mix


class Lineup:
    """One step's problems by launch number, each at most once: a second draw would repeat the same noise.

    There are as many launches as problems: `len(lineup)` bounds a step's cap. Where the pool has nothing
    left, the data goes on, and the other way round; the same between levels; and where the window has nothing
    left, what it passed over is drawn.
    """

    def __init__(
        self,
        ids: Sequence[str],
        pool: EasyPool,
        *,
        position: int,
        seed: int,
        step: int,
        mix: Mix | None = None,
        window: PassWindow | None = None,
    ) -> None:
        """`position` is the place in the data's own order; a mix has places of its own."""
        self._alpha, self._seed, self._step, self._position = pool.alpha, seed, step, position
        outside = window.outside() if window else set()
        index_of = {problem: index for index, problem in enumerate(ids)} if pool.problems or outside else {}
        self._easy = [index_of[problem] for problem in pool.problems if problem in index_of]
        taken = set(self._easy)  # not to be drawn from a deck
        aside = {index_of[problem] for problem in outside if problem in index_of}
        chance = window.chance if window else 0.0
        decks = mix.decks() if mix else {WHOLE: Deck(members=range(len(ids)), place=position)}
        self._walks = [
            Walk(name, deck, seed=seed, taken=taken, aside=aside, chance=chance)
            for name, deck in decks.items()
        ]
        self._count = len(self._easy) + sum(walk.num_left for walk in self._walks)
        self._picked: list[int] = []
        self._places = [self._where()]  # after so many launches

    def __len__(self) -> int:
        return self._count

    def pick(self, launch: int) -> int:
        """The index of the problem that this launch draws, in whatever order launches are asked for."""
        assert launch < self._count, f"launch {launch} of {self._count} problems would repeat one"
        while len(self._picked) <= launch:
            self._picked.append(self._pick_next())
            self._places.append(self._where())
        return self._picked[launch]

    def position_after(self, num_launches: int) -> int:
        """Where the next step goes on in the data's order when this one ended after so many launches."""
        return self._after(num_launches).get(WHOLE, self._position)

    def places_after(self, num_launches: int) -> dict[str, int]:
        """The same for the decks of a mix: {"1": 12, "3": 4}."""
        return {name: place for name, place in self._after(num_launches).items() if name != WHOLE}

    def _after(self, num_launches: int) -> dict[str, int]:
        if num_launches:
            self.pick(num_launches - 1)
        return dict(zip((walk.name for walk in self._walks), self._places[num_launches], strict=True))

    def _where(self) -> tuple[int, ...]:
        return tuple(walk.place for walk in self._walks)

    def _pick_next(self) -> int:
        coin, choice = two_uniforms(self._seed, self._step, len(self._picked))
        walks = [walk for walk in self._walks if walk.num_left]
        if self._easy and (coin < self._alpha or not walks):
            return self._easy.pop(int(choice * len(self._easy)))
        return choose(walks, choice).draw()


def choose(walks: Sequence[Walk], choice: float) -> Walk:
    """By weight: of decks with weights 1 and 3, a choice below 0.25 is the first."""
    sums = [*accumulate(walk.deck.weight for walk in walks)]
    return walks[min(bisect_right(sums, choice * sums[-1]), len(walks) - 1)]


def two_uniforms(seed: int, step: int, launch: int) -> tuple[float, float]:
    """Two independent numbers in [0, 1) that belong to a launch for ever."""
    return uniforms("easy", seed, step, launch)
