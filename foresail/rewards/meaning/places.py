"""Places on the real line, and a set as where it may change and how to tell whether a number is in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.exact import exact
from foresail.rewards.meaning.numeric import NoValue, evaluate
from foresail.rewards.notation.tree import Node, symbols

CLOSE = Fraction(1, 10**60)  # relative: two evaluations of the same number differ by less
LOOK = 25  # work to tell whether a number lies in an interval
_FAR = (25, 32, 45, 70, 110, 300, 1100, 10**4, 10**6)
GRID = sorted(
    [Fraction(n * 37, 41) for n in range(-23, 24)]
    + [Fraction(n, 211) for n in (-180, -95, -31, 17, 59, 122, 200)]
    + [Fraction(sign * n) for n in _FAR for sign in (1, -1)]
)


class RealSet(NamedTuple):
    """The places where membership may change (if they are all known), and membership itself."""

    breaks: tuple[Fraction, ...]
    contains: Callable[[Fraction], bool]
    complete: bool = True


EVERYTHING = RealSet((), lambda place: True)


def union(parts: Sequence[RealSet]) -> RealSet:
    return RealSet(_breaks(parts), lambda x: any(part.contains(x) for part in parts), _complete(parts))


def intersection(parts: Sequence[RealSet]) -> RealSet:
    return RealSet(_breaks(parts), lambda x: all(part.contains(x) for part in parts), _complete(parts))


def complement(part: RealSet) -> RealSet:
    return RealSet(part.breaks, lambda x: not part.contains(x), part.complete)


def _breaks(parts: Sequence[RealSet]) -> tuple[Fraction, ...]:
    return tuple(point for part in parts for point in part.breaks)


def _complete(parts: Sequence[RealSet]) -> bool:
    return all(part.complete for part in parts)


def place(node: Node, budget: Budget) -> Fraction | None:
    """A real constant as a fraction: exact, or right to a hundred digits."""
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


def to_fraction(number: object) -> Fraction:
    real = getattr(number, "real", number)
    sign, mantissa, exponent, _ = real._mpf_  # type: ignore[attr-defined]
    value = Fraction(int(mantissa)) * Fraction(2) ** int(max(min(exponent, 10_000), -10_000))
    return -value if sign else value


def close(one: Fraction, other: Fraction) -> bool:
    return one == other or abs(one - other) <= CLOSE * max(abs(one), abs(other))
