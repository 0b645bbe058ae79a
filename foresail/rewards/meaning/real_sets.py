r"""Sets of real numbers: intervals, unions, finite sets, inequalities in one unknown.

Two sets are the same when they agree at every place where either changes, between those places, and beyond
them.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.inequalities import solution_set
from foresail.rewards.meaning.places import (
    EVERYTHING,
    GRID,
    LOOK,
    RealSet,
    close,
    complement,
    end,
    intersection,
    place,
    union,
)
from foresail.rewards.notation.tree import Node

BESIDE = Fraction(1, 10**9)  # how near to a break an unsteady set is looked at


def same_set(one: RealSet, other: RealSet) -> bool:
    places = _test_places(one, other)
    return all(one.contains(place) == other.contains(place) for place in places)


def real_set(node: Node, budget: Budget) -> RealSet | None:
    r"""`(0,1]`, `x < 3`, `\mathbb{R} \setminus \{0\}`, … as a set; None where the node is none of these."""
    head, args = node.head, node.args
    if head in ("()", "[]", "(]", "[)") and len(args) == 2:
        return _interval(args[0], args[1], head, budget)
    if head in ("{}", "braces"):
        points = [point for item in args if (point := place(item, budget)) is not None]
        return _finite(points, budget) if len(points) == len(args) else None
    if head == "set":
        return EVERYTHING if args[0] == "R" else None
    if head in ("union", "intersect", "minus"):
        return _combine(head, args, budget)
    if head == "chain":
        return _from_chain(node, budget)
    if head == "list":
        return _alternatives(args, budget)
    return None


def _interval(low: Node, high: Node, head: str, budget: Budget) -> RealSet | None:
    budget.spend(2 * LOOK)
    left, right = end(low, budget), end(high, budget)
    if left is None or right is None:
        return None
    closed_left, closed_right = head[0] == "[", head[1] == "]"

    def contains(x: Fraction) -> bool:
        budget.spend(LOOK)
        above = closed_left if isinstance(left, Fraction) and close(x, left) else _is_less(left, x)
        below = closed_right if isinstance(right, Fraction) and close(x, right) else _is_less(x, right)
        return above and below

    return RealSet(tuple(side for side in (left, right) if isinstance(side, Fraction)), contains)


def _is_less(one: Fraction | str, other: Fraction | str) -> bool:
    """Among numbers and the signs "-" and "+" for the infinities."""
    if isinstance(one, str) or isinstance(other, str):
        return one == "-" or other == "+"
    return one < other


def _finite(points: list[Fraction], budget: Budget) -> RealSet:
    def contains(x: Fraction) -> bool:
        budget.spend(LOOK + 3 * len(points))
        return any(close(x, point) for point in points)

    return RealSet(tuple(points), contains)


def _combine(head: str, args: tuple[Node, ...], budget: Budget) -> RealSet | None:
    one, other = real_set(args[0], budget), real_set(args[1], budget)
    if one is None or other is None:
        return None
    if head == "union":
        return union([one, other])
    return intersection([one, other if head == "intersect" else complement(other)])


def _alternatives(items: tuple[Node, ...], budget: Budget) -> RealSet | None:
    """`x < -1 or x > 1`: a union of what each item allows."""
    parts = _sets(items, budget)
    return union(parts) if parts else None


def together(items: tuple[Node, ...], budget: Budget) -> RealSet | None:
    """`x > 1, x < 3` read as conditions that hold at once."""
    parts = _sets(items, budget)
    return intersection(parts) if parts else None


def _sets(items: tuple[Node, ...], budget: Budget) -> list[RealSet]:
    """The set of each item; none at all where one item is no set."""
    sets = [real_set(item, budget) for item in items]
    known = [part for part in sets if part is not None]
    return known if len(known) == len(sets) else []


def _from_chain(chain: Node, budget: Budget) -> RealSet | None:
    sides, signs = chain.args[::2], chain.args[1::2]
    if signs == ("in",):
        return real_set(sides[1], budget)
    if signs == ("notin",):
        inner = real_set(sides[1], budget)
        return None if inner is None else complement(inner)
    return solution_set(chain, budget)


def _test_places(one: RealSet, other: RealSet) -> list[Fraction]:
    breaks = sorted(set(one.breaks + other.breaks))
    distinct = [
        point for index, point in enumerate(breaks) if index == 0 or not close(point, breaks[index - 1])
    ]
    places = breaks + [left + (right - left) * Fraction(3, 7) for left, right in pairwise(distinct)]
    if distinct:
        low, high = distinct[0], distinct[-1]
        places += [low - abs(low) - 1, high + abs(high) + 1]
    else:
        places += [Fraction(0), Fraction(1), Fraction(-1)]
    if not (one.complete and other.complete):
        places += GRID + [point + side * (abs(point) + 1) for point in distinct for side in (BESIDE, -BESIDE)]
    return places
