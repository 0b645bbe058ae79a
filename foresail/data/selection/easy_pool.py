"""The easy pool: problems that every sample solved, repeated now and then against forgetting.

They leave the data's order, and a launch takes one of them with probability alpha; one that is no longer solved
goes back to the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, kw_only=True)
class EasyPool:
    """Ids of solved problems, in the order in which they came in."""

    alpha: float
    problems: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 1:
            raise ValueError(f"alpha {self.alpha} is no probability; use one from 0 to 1, e.g. 0.1")

    def after(self, pass_rates: Mapping[str, float]) -> Self:
        """The pool after a step, given the pass rate of each of its gradable groups, in launch order.

        EasyPool(alpha=0.1, problems=("a", "b")).after({"b": 0.5, "c": 1.0}).problems -> ("a", "c")
        """
        easy = dict.fromkeys(self.problems)
        for problem, rate in pass_rates.items():
            if rate == 1:
                easy[problem] = None
            else:
                easy.pop(problem, None)
        return replace(self, problems=tuple(easy))

    def state(self) -> list[str]:
        """For a checkpoint's JSON; `EasyPool(alpha=…, problems=tuple(state))` is this pool again."""
        return list(self.problems)
