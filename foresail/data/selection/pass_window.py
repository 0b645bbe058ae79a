"""A window of pass rates: problems inside it, and those not yet measured, are worth sampling.

A problem that is always or never solved costs a group and gives no gradient. Dynamic sampling drops it after
sampling; the window skips it before. In every pass over the data a problem outside is picked again with a small
probability, since the policy may have learned or forgotten it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self


@dataclass(frozen=True, kw_only=True)
class PassWindow:
    """Pass rates of the latest visits to each problem, and which means of them are worth a launch."""

    low: float
    high: float
    visits: int  # rates that are remembered of each problem
    chance: float  # probability of a problem outside, in every pass over the data
    rates: Mapping[str, list[float]] = field(default_factory=dict)

    def after(self, pass_rates: Mapping[str, float]) -> Self:
        """The window after a step, given the pass rate of each gradable group of its prefix."""
        new = {
            problem: [*self.rates.get(problem, ()), rate][-self.visits :]
            for problem, rate in pass_rates.items()
        }
        return replace(self, rates={**self.rates, **new})

    def outside(self) -> set[str]:
        """The problems to skip. One without visits is never among them."""
        return {problem for problem, mean in self._means() if not self.low <= mean <= self.high}

    def sizes(self) -> dict[str, int]:
        """Visited problems by where they lie: {"below": 3, "inside": 40, "above": 9}."""
        means = [mean for _, mean in self._means()]
        below, above = sum(mean < self.low for mean in means), sum(mean > self.high for mean in means)
        return {"below": below, "inside": len(means) - below - above, "above": above}

    def state(self) -> dict[str, list[float]]:
        """For a checkpoint's JSON; `PassWindow(…, rates=state)` is this window again."""
        return dict(self.rates)

    def _means(self) -> Iterator[tuple[str, float]]:
        return ((problem, sum(rates) / len(rates)) for problem, rates in self.rates.items())
