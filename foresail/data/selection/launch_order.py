"""The order of a step's launches: problems of the easy pool, of the data, or of a source or level.

A launch takes from the pool with probability alpha (`easy_pool.py`). Other launches take the next problem of the
data, or of a source or difficulty level picked by its weight (`supply.py`), and pass over those outside the window
of pass rates (`pass_window.py`).

A step's problems are a pure function of (pool, window, places, seed, step, launch). Places, window and pool
after a step depend only on the groups up to the one that closed it (see `rollout/controller.py`), so a run that
is killed and resumed, or that launched more or fewer groups beyond those, sees the same problems.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate

from foresail.data.selection.easy_pool import EasyPool
from foresail.data.selection.order import uniforms
from foresail.data.selection.pass_window import PassWindow
from foresail.data.selection.strata import Stratum, open_stratum

WHOLE = "all"  # the stratum of a stage without a mix, of data without weights


class LaunchOrder:
    """One step's problems by launch number, each at most once: a second time would repeat the same noise.

    There are as many launches as problems: `len(launch_order)` bounds a step's cap. If the pool is
    empty, the problem comes from the data, and the other way round; so it is between sources and levels. If the
    window leaves no problem, one outside of it is taken.
    """

    def __init__(
        self,
        ids: Sequence[str],
        pool: EasyPool,
        *,
        position: int,
        seed: int,
        step: int,
        strata: Mapping[str, Stratum] | None = None,
        window: PassWindow | None = None,
    ) -> None:
        """`position` is the place in the data's own order; other strata have places of their own."""
        self._alpha, self._seed, self._step, self._position = pool.alpha, seed, step, position
        outside = window.outside() if window else set()
        index_of = {problem: index for index, problem in enumerate(ids)} if pool.problems or outside else {}
        self._easy = [index_of[problem] for problem in pool.problems if problem in index_of]
        taken = set(self._easy)  # never picked from a stratum
        skipped = {index_of[problem] for problem in outside if problem in index_of}
        chance = window.chance if window else 0.0
        strata = strata or {WHOLE: Stratum(members=range(len(ids)), place=position)}
        self._iterators = [
            open_stratum(name, stratum, seed=seed, taken=taken, skipped=skipped, chance=chance)
            for name, stratum in strata.items()
        ]
        self._count = len(self._easy) + sum(iterator.num_left for iterator in self._iterators)
        self._picked: list[int] = []
        self._places = [self._where()]  # after so many launches

    def __len__(self) -> int:
        return self._count

    def pick(self, launch: int) -> int:
        """The index of the problem that this launch takes; launches may be asked for in any order."""
        assert launch < self._count, f"launch {launch} of {self._count} problems would repeat one"
        while len(self._picked) <= launch:
            self._picked.append(self._pick_next())
            self._places.append(self._where())
        return self._picked[launch]

    def position_after(self, num_launches: int) -> int:
        """The next step's place in the data's order if this one ended after so many launches."""
        return self._after(num_launches).get(WHOLE, self._position)

    def places_after(self, num_launches: int) -> dict[str, int]:
        """The same for strata of sources and levels: {"1": 12, "3": 4}."""
        return {name: place for name, place in self._after(num_launches).items() if name != WHOLE}

    def _after(self, num_launches: int) -> dict[str, int]:
        if num_launches:
            self.pick(num_launches - 1)
        return dict(
            zip((iterator.name for iterator in self._iterators), self._places[num_launches], strict=True)
        )

    def _where(self) -> tuple[int, ...]:
        return tuple(iterator.place for iterator in self._iterators)

    def _pick_next(self) -> int:
        coin, choice = two_uniforms(self._seed, self._step, len(self._picked))
        iterators = [iterator for iterator in self._iterators if iterator.num_left]
        if self._easy and (coin < self._alpha or not iterators):
            return self._easy.pop(int(choice * len(self._easy)))
        return iterators[choose([iterator.stratum.weight for iterator in iterators], choice)].pick()


def choose(weights: Sequence[float], choice: float) -> int:
    """By weight: choose([1, 3], choice) -> 0 for a choice below 0.25, else 1."""
    sums = [*accumulate(weights)]
    return min(bisect_right(sums, choice * sums[-1]), len(weights) - 1)


def two_uniforms(seed: int, step: int, launch: int) -> tuple[float, float]:
    """Two independent numbers in [0, 1), a function of the launch alone."""
    return uniforms("easy", seed, step, launch)
