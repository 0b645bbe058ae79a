"""Real numbers as fractions, and sets of them: where membership may change, and a function that tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import exact, size_cost
from foresail.maths.meaning.functions import NoValue
from foresail.maths.meaning.numeric import evaluate
from foresail.maths.notation.tree import INFINITY, Node, symbols

TOLERANCE = Fraction(1, 10**100)  # relative: two evaluations of the same number differ by less
MEMBERSHIP_COST = 25  # to tell whether a number lies in an interval
BESIDE = Fraction(1, 10**9)  # relative distance from a break at which sets are compared if breaks are missing
_FAR = (25, 32, 45, 70, 110, 300, 1100, 10**4, 10**6, 10**9, 10**13, 10**18, 10**25)
_TINY = (10**3, 10**6, 10**10, 10**20)
GRID = sorted(
    [Fraction(n * 37, 41) for n in range(-23, 24)]
    + [Fraction(n, 211) for n in (-180, -95, -31, 17, 59, 122, 200)]
    + [Fraction(sign * n) for n in _FAR for sign in (1, -1)]
    + [Fraction(sign, n) for n in _TINY for sign in (1, -1)]
)


class Rounded(Fraction):
    """A number known to some 130 digits, such as the root of 2; every other Fraction is exact."""


class RealSet(NamedTuple):
    """Membership, which may be unknown (None), and the breaks where it may change, all of them if `complete`."""

    breaks: tuple[Fraction, ...]
    contains: Callable[[Fraction], bool | None]
    complete: bool = True


EVERYTHING = RealSet((), lambda x: True)


def union(parts: Sequence[RealSet]) -> RealSet:
    def contains(x: Fraction) -> bool | None:
        memberships = [part.contains(x) for part in parts]
        return True if True in memberships else (None if None in memberships else False)

    breaks = tuple(point for part in parts for point in part.breaks)
    return RealSet(breaks, contains, all(part.complete for part in parts))


def intersection(parts: Sequence[RealSet]) -> RealSet:
    return complement(union([complement(part) for part in parts]))


def complement(part: RealSet) -> RealSet:
    def contains(x: Fraction) -> bool | None:
        inside = part.contains(x)
        return None if inside is None else not inside

    return RealSet(part.breaks, contains, part.complete)


def same_set(one: RealSet, other: RealSet, budget: Budget) -> bool | None:
    """Whether both agree at every break of either, between the breaks and beyond them; None is unknown."""
    for x in sample_points(one.breaks + other.breaks, budget):
        inside, also = one.contains(x), other.contains(x)
        if inside is None or also is None:
            return None
        if inside != also:
            return False
    if one.complete and other.complete:
        return True
    beside = [
        point + side * (abs(point) + 1) for point in one.breaks + other.breaks for side in (BESIDE, -BESIDE)
    ]
    pairs = [(one.contains(x), other.contains(x)) for x in GRID + beside]
    known = [pair for pair in pairs if None not in pair]
    return all(inside == also for inside, also in known) if 2 * len(known) > len(pairs) else None


def is_empty(part: RealSet, budget: Budget) -> bool:
    """Whether nothing is in a set that changes at its breaks alone."""
    return not any(map(part.contains, sample_points(part.breaks, budget)))


def sample_points(breaks: tuple[Fraction, ...], budget: Budget) -> list[Fraction]:
    """The breaks, a number between each two, and one beyond them on either side."""
    budget.spend(sum(4 + 4 * size_cost(point) for point in breaks))
    ordered = sorted(set(breaks))
    if not ordered:
        return [Fraction(0), Fraction(1), Fraction(-1)]
    distinct = [ordered[0], *(right for left, right in pairwise(ordered) if not close(right, left))]
    between = [left + (right - left) * Fraction(3, 7) for left, right in pairwise(distinct)]
    low, high = distinct[0], distinct[-1]
    return [*ordered, *between, low - abs(low) - 1, high + abs(high) + 1]


def real_value(node: Node, budget: Budget) -> Fraction | None:
    """A real constant as a fraction: exact, or rounded to 130 digits."""
    value = exact(node, budget=budget)
    if value is not None:
        return value
    if symbols(node):
        return None
    try:
        number = evaluate(node, {}, budget)
    except NoValue:
        return None
    return to_fraction(number.fine) if number.is_real else None


def endpoint(node: Node, budget: Budget) -> Fraction | str | None:
    """A real number, or the sign of an infinity."""
    if node in (INFINITY, Node("neg", (INFINITY,))):
        return "+" if node == INFINITY else "-"
    return real_value(node, budget)


def to_fraction(number: object) -> Rounded:
    """The real part of an mpmath number."""
    real = getattr(number, "real", number)
    sign, mantissa, exponent, _ = real._mpf_  # type: ignore[attr-defined]
    value = Fraction(int(mantissa)) * Fraction(2) ** int(max(min(exponent, 10_000), -10_000))
    return Rounded(-value if sign else value)


def close(one: Fraction, other: Fraction) -> bool:
    """Whether both are the same number: to the last digit, or as far as a rounded one is known."""
    if one == other:
        return True
    rounded = isinstance(one, Rounded) or isinstance(other, Rounded)
    return rounded and abs(one - other) <= TOLERANCE * max(abs(one), abs(other))
