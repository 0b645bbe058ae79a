"""The gain of drafts in a simulation: tokens per step by the number of siblings to draft from."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from pydantic import Field

from foresail.recipe.tables.part import Part
from foresail.simulate.costs import StepCost
from foresail.simulate.distributions import bisect

# Seer's mean tokens per step, own token included, one path: with 0, 1, 5 and 15 siblings to draft from.
SEER_LINEAR = ((0, 1.70), (1, 2.04), (5, 2.32), (15, 2.53))


class Speculation(Part):
    """The probability of a drafted token depends only on the number of siblings."""

    max_draft: int = Field(8, ge=1, le=16, description="longest draft; the length follows the batch")
    draft_share: float = Field(0.1, ge=0, description="time to find drafts, as a share of a plain step")


class DraftingGain:
    """DraftingGain(Speculation()).tokens(0, 8) -> 1.70: the step's own token and accepted drafts."""

    def __init__(self, settings: Speculation) -> None:
        self._settings = settings
        self._tokens: dict[int, list[float]] = {}  # references -> tokens per step, by the draft's length

    def tokens(self, references: int, draft: int) -> float:
        if references not in self._tokens:
            self._tokens[references] = self._all_lengths(between(references, SEER_LINEAR))
        return self._tokens[references][draft]

    def best_draft(self, rows: Mapping[int, int], cached: float, cost: StepCost) -> int:
        """The draft length with most tokens per second for these rows, counted by references."""
        num_rows, reading = sum(rows.values()), cost.per_cached_token * cached

        def speed(draft: int) -> float:
            tokens = sum(count * self.tokens(references, draft) for references, count in rows.items())
            return tokens / (self.base(cost, num_rows, draft) + reading)

        return max(range(self._settings.max_draft + 1), key=speed)

    def base(self, cost: StepCost, num_rows: int, draft: int) -> float:
        """Seconds of a step with the search for drafts, without reading the cache."""
        if draft == 0:
            return cost.base(num_rows)
        search = self._settings.draft_share * cost.base(num_rows)
        return cost.base(num_rows * (draft + 1), drafting=True) + search

    def _all_lengths(self, longest: float) -> list[float]:
        """Tokens per step for drafts of 0, 1, 2, … tokens, from those for the longest draft."""
        max_draft = self._settings.max_draft
        chance = bisect(lambda chance: expected_tokens(chance, max_draft) - longest, 0.0, 1.0)
        return [expected_tokens(chance, draft) for draft in range(max_draft + 1)]


def expected_tokens(chance: float, draft: int) -> float:
    """expected_tokens(0.5, 2) -> 1.75: 1 + 0.5 + 0.25."""
    return sum(chance**place for place in range(draft + 1))


def between(place: float, points: tuple[tuple[int, float], ...]) -> float:
    """Linear interpolation: between(3, ((1, 2.0), (5, 3.0))) -> 2.5; the last value beyond the last point."""
    for (left, low), (right, high) in pairwise(points):
        if place <= right:
            return low + (high - low) * (place - left) / (right - left)
    return points[-1][1]
