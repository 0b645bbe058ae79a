r"""Lists that go on: `1, 2, \ldots, 5` is spelled out, and `1, 2, 3, 4, \ldots` is as much as `1, 2, \ldots`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.exact import exact
from foresail.rewards.notation.tree import DOTS, Node, number

MAX_TERMS = 256


def spelled_out(items: tuple[Node, ...], budget: Budget) -> tuple[Node, ...]:
    """The items in one form, where the numbers before the dots are evenly spaced or have one ratio."""
    if items.count(DOTS) != 1 or items[0] == DOTS:
        return items
    place = items.index(DOTS)
    before = [exact(item, budget=budget) for item in items[:place]]
    after = [exact(item, budget=budget) for item in items[place + 1 :]]
    known = [value for value in before if value is not None]
    if len(known) < max(2, len(before)) or None in after:
        return items
    step, ratio = known[1] - known[0], known[1] / known[0] if known[0] else None
    if step and all(right - left == step for left, right in pairwise(known)):
        if not after:
            return (number(known[0]), number(known[1]), DOTS)
        return _up_to(known[0], step, [value for value in after if value is not None]) or items
    if (
        not after
        and len(known) > 2
        and ratio
        and all(right == left * ratio for left, right in pairwise(known))
    ):
        return (*map(number, known[:3]), DOTS)
    return items


def _up_to(first: Fraction, step: Fraction, after: Sequence[Fraction]) -> tuple[Node, ...] | None:
    """All terms from the first to the last one named; None where the steps do not lead there."""
    count = (after[-1] - first) / step
    if count.denominator != 1 or not 0 < count < MAX_TERMS:
        return None
    terms = [first + step * index for index in range(count.numerator + 1)]
    return tuple(map(number, terms)) if terms[-len(after) :] == list(after) else None
