"""Which problem a launch draws: the data's order, with the easy pool mixed in.

Problems that every sample solved leave the data's order for the easy pool. A launch takes from the pool with
probability alpha, so that what was learned is not forgotten; one that is no longer solved goes back.

A step's problems are a pure function of (pool, position, seed, step, launch). The position and the pool after
a step depend on the step's prefix only (see `controller.Closing`), so a run that is killed and resumed, or
that launched more or fewer groups beyond the prefix, sees the same problems.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from foresail.data.order import problem_at
from foresail.rollout.controller import Outcome


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


class Lineup:
    """One step's problems by launch number, each at most once: a second draw would repeat the same noise.

    There are as many launches as problems: `len(lineup)` bounds a step's cap. Where the pool has nothing
    left, the data's order goes on, and the other way round.
    """

    def __init__(self, ids: Sequence[str], pool: EasyPool, *, position: int, seed: int, step: int) -> None:
        self._count, self._alpha, self._seed, self._step = len(ids), pool.alpha, seed, step
        index_of = {problem: index for index, problem in enumerate(ids)} if pool.problems else {}
        self._easy = [index_of[problem] for problem in pool.problems if problem in index_of]
        self._taken = set(self._easy)  # not to be drawn from the data's order
        self._num_fresh = self._count - len(self._easy)
        self._picked: list[int] = []
        self._positions = [position]  # after so many launches

    def __len__(self) -> int:
        return self._count

    def pick(self, launch: int) -> int:
        """The index of the problem that this launch draws, in whatever order launches are asked for."""
        assert launch < self._count, f"launch {launch} of {self._count} problems would repeat one"
        while len(self._picked) <= launch:
            self._picked.append(self._pick_next())
        return self._picked[launch]

    def position_after(self, num_launches: int) -> int:
        """Where the next step goes on in the data's order when this one ended after so many launches."""
        if num_launches:
            self.pick(num_launches - 1)
        return self._positions[num_launches]

    def _pick_next(self) -> int:
        coin, choice = two_uniforms(self._seed, self._step, len(self._picked))
        place = self._positions[-1]
        if self._easy and (coin < self._alpha or not self._num_fresh):
            picked = self._easy.pop(int(choice * len(self._easy)))
        else:
            # A step that crosses into the next pass over the data may meet what it has drawn already.
            while (picked := problem_at(place, self._count, self._seed)) in self._taken:
                place += 1
            self._taken.add(picked)
            self._num_fresh -= 1
            place += 1
        self._positions.append(place)
        return picked


def two_uniforms(seed: int, step: int, launch: int) -> tuple[float, float]:
    """Two independent numbers in [0, 1) that belong to a launch for ever."""
    text = f"easy\x1f{seed}\x1f{step}\x1f{launch}"
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    # 53 bits: all a float holds, so that none rounds up to 1
    first, second = (int.from_bytes(part, "little") >> 11 for part in (digest[:8], digest[8:]))
    return first * 2.0**-53, second * 2.0**-53
