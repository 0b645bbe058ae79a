"""Places on the real line, and a set as where it may change and how to tell whether a number is in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.exact import exact
from foresail.rewards.meaning.functions import NoValue
from foresail.rewards.meaning.numeric import evaluate
from foresail.rewards.notation.tree import Node, symbols

CLOSE = Fraction(1, 10**100)  # relative: two evaluations of the same number differ by less
LOOK = 25  # work to tell whether a number lies in an interval
BESIDE = Fraction(1, 10**9)  # how near to a break an unsteady set is looked at
_FAR = (25, 32, 45, 70, 110, 300, 1100, 10**4, 10**6, 10**9, 10**13, 10**18, 10**25)
_TINY = (10**3, 10**6, 10**10, 10**20)
GRID = sorted(
    [Fraction(n * 37, 41) for n in range(-23, 24)]
    + [Fraction(n, 211) for n in (-180, -95, -31, 17, 59, 122, 200)]
    + [Fraction(sign * n) for n in _FAR for sign in (1, -1)]
    + [Fraction(sign, n) for n in _TINY for sign in (1, -1)]
)


class Rounded(Fraction):
    """A place known to some 130 digits, such as the root of 2; every other Fraction is exact."""


class RealSet(NamedTuple):
    """The places where membership may change (if they are all known), and membership itself: None is unknown."""

    breaks: tuple[Fraction, ...]
    contains: Callable[[Fraction], bool | None]
    complete: bool = True


EVERYTHING = RealSet((), lambda place: True)


def union(parts: Sequence[RealSet]) -> RealSet:
    def contains(x: Fraction) -> bool | None:
        found = [part.contains(x) for part in parts]
        return True if True in found else (None if None in found else False)

    breaks = tuple(point for part in parts for point in part.breaks)
    return RealSet(breaks, contains, all(part.complete for part in parts))


def intersection(parts: Sequence[RealSet]) -> RealSet:
    return complement(union([complement(part) for part in parts]))


def complement(part: RealSet) -> RealSet:
    def contains(x: Fraction) -> bool | None:
        inside = part.contains(x)
        return None if inside is None else not inside

    return RealSet(part.breaks, contains, part.complete)


def same_set(one: RealSet, other: RealSet) -> bool | None:
    """Whether both agree at every place where either changes, between those places and beyond; None is unknown."""
    for place in test_places(one.breaks + other.breaks):
        inside, also = one.contains(place), other.contains(place)
        if inside is None or also is None:
            return None
        if inside != also:
            return False
    if one.complete and other.complete:
        return True
    beside = [
        point + side * (abs(point) + 1) for point in one.breaks + other.breaks for side in (BESIDE, -BESIDE)
    ]
    looks = [(one.contains(place), other.contains(place)) for place in GRID + beside]
    known = [(inside, also) for inside, also in looks if inside is not None and also is not None]
    return all(inside == also for inside, also in known) if 2 * len(known) > len(looks) else None


def is_empty(part: RealSet) -> bool:
    """Whether nothing is in a set that changes at its breaks alone."""
    return not any(part.contains(place) for place in test_places(part.breaks))


def test_places(breaks: tuple[Fraction, ...]) -> list[Fraction]:
    """The breaks, a place between each two, and one beyond them on either side."""
    ordered = sorted(set(breaks))
    distinct = [
        point for index, point in enumerate(ordered) if index == 0 or not close(point, ordered[index - 1])
    ]
    between = [left + (right - left) * Fraction(3, 7) for left, right in pairwise(distinct)]
    if not distinct:
        return [Fraction(0), Fraction(1), Fraction(-1)]
    low, high = distinct[0], distinct[-1]
    return [*ordered, *between, low - abs(low) - 1, high + abs(high) + 1]


def place(node: Node, budget: Budget) -> Fraction | None:
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


def end(node: Node, budget: Budget) -> Fraction | str | None:
    """A place, or the sign of an infinity."""
    if node.head == "constant" and node.args[0] == "infinity":
        return "+"
    if node.head == "neg" and node.args[0].head == "constant" and node.args[0].args[0] == "infinity":
        return "-"
    return place(node, budget)


def to_fraction(number: object) -> Rounded:
    real = getattr(number, "real", number)
    sign, mantissa, exponent, _ = real._mpf_  # type: ignore[attr-defined]
    value = Fraction(int(mantissa)) * Fraction(2) ** int(max(min(exponent, 10_000), -10_000))
    return Rounded(-value if sign else value)


def close(one: Fraction, other: Fraction) -> bool:
    """Whether both are the same place: to the last digit, or as far as a rounded one is known."""
    if one == other:
        return True
    rounded = isinstance(one, Rounded) or isinstance(other, Rounded)
    return rounded and abs(one - other) <= CLOSE * max(abs(one), abs(other))
