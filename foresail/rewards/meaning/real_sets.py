r"""Sets of real numbers: intervals, unions, finite sets, inequalities in one unknown.

A set is where it may change and how to tell whether a number is in it. Two sets are the same when they
agree at every place where either changes, between those places, and beyond them.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from foresail.rewards.meaning.exact import exact
from foresail.rewards.meaning.numeric import Budget, NoValue, evaluate
from foresail.rewards.notation.tree import Node, symbol, symbols, walk

CLOSE = Fraction(1, 10**60)  # relative: two evaluations of the same number differ by less
GRID = [Fraction(n * 37, 41) for n in range(-23, 24)] + [
    Fraction(n, 211) for n in (-180, -95, -31, 17, 59, 122, 200)
]

Unknown = "\0unknown"


class RealSet(NamedTuple):
    """The places where membership may change (if they are all known), and membership itself."""

    breaks: tuple[Fraction, ...]
    contains: Callable[[Fraction], bool]
    complete: bool = True


EVERYTHING = RealSet((), lambda place: True)
NOTHING = RealSet((), lambda place: False)


def same_set(one: RealSet, other: RealSet) -> bool:
    places = _test_places(one, other)
    return all(one.contains(place) == other.contains(place) for place in places)


def real_set(node: Node, budget: Budget) -> RealSet | None:
    r"""`(0,1]`, `x < 3`, `\mathbb{R} \setminus \{0\}`, … as a set; None where the node is none of these."""
    head, args = node.head, node.args
    if head in ("()", "[]", "(]", "[)") and len(args) == 2:
        return _interval(args[0], args[1], head, budget)
    if head in ("{}", "braces"):
        points = [place(item, budget) for item in args]
        return (
            None if any(point is None for point in points) else _finite([p for p in points if p is not None])
        )
    if head == "set":
        return EVERYTHING if args[0] == "R" else None
    if head in ("union", "intersect", "minus"):
        return _combine(head, args, budget)
    if head == "chain":
        return _from_chain(node, budget)
    if head == "list":
        return _alternatives(args, budget)
    return None


def place(node: Node, budget: Budget) -> Fraction | None:
    """A real constant as a fraction: exact, or right to a hundred digits."""
    value = exact(node)
    if value is not None:
        return value
    if symbols(node):
        return None
    try:
        number = evaluate(node, {}, budget)
    except NoValue:
        return None
    return _to_fraction(number.fine) if number.is_real else None


def _to_fraction(number: object) -> Fraction:
    real = getattr(number, "real", number)
    sign, mantissa, exponent, _ = real._mpf_  # type: ignore[attr-defined]
    value = Fraction(int(mantissa)) * Fraction(2) ** int(max(min(exponent, 10_000), -10_000))
    return -value if sign else value


def _close(one: Fraction, other: Fraction) -> bool:
    return one == other or abs(one - other) <= CLOSE * max(abs(one), abs(other))


def _interval(low: Node, high: Node, head: str, budget: Budget) -> RealSet | None:
    left, right = _end(low, budget), _end(high, budget)
    if left is None or right is None:
        return None
    closed_left, closed_right = head[0] == "[", head[1] == "]"

    def contains(x: Fraction) -> bool:
        above = closed_left if isinstance(left, Fraction) and _close(x, left) else _is_less(left, x)
        below = closed_right if isinstance(right, Fraction) and _close(x, right) else _is_less(x, right)
        return above and below

    return RealSet(tuple(end for end in (left, right) if isinstance(end, Fraction)), contains)


def _is_less(one: Fraction | str, other: Fraction | str) -> bool:
    """Among numbers and the signs "-" and "+" for the infinities."""
    if isinstance(one, str) or isinstance(other, str):
        return one == "-" or other == "+"
    return one < other


def _end(node: Node, budget: Budget) -> Fraction | str | None:
    if node.head == "constant" and node.args[0] == "infinity":
        return "+"
    if node.head == "neg" and node.args[0].head == "constant" and node.args[0].args[0] == "infinity":
        return "-"
    return place(node, budget)


def _finite(points: list[Fraction]) -> RealSet:
    return RealSet(tuple(points), lambda x: any(_close(x, point) for point in points))


def _combine(head: str, args: tuple[Node, ...], budget: Budget) -> RealSet | None:
    one, other = real_set(args[0], budget), real_set(args[1], budget)
    if one is None or other is None:
        return None
    rules: dict[str, Callable[[Fraction], bool]] = {
        "union": lambda x: one.contains(x) or other.contains(x),
        "intersect": lambda x: one.contains(x) and other.contains(x),
        "minus": lambda x: one.contains(x) and not other.contains(x),
    }
    return RealSet(one.breaks + other.breaks, rules[head], one.complete and other.complete)


def _alternatives(items: tuple[Node, ...], budget: Budget) -> RealSet | None:
    """`x < -1 or x > 1`: a union of what each item allows."""
    sets = [real_set(item, budget) for item in items]
    if not sets or any(part is None for part in sets):
        return None
    parts = [part for part in sets if part is not None]
    breaks = tuple(point for part in parts for point in part.breaks)
    return RealSet(breaks, lambda x: any(part.contains(x) for part in parts), all(p.complete for p in parts))


def together(items: tuple[Node, ...], budget: Budget) -> RealSet | None:
    """`x > 1, x < 3` read as conditions that hold at once."""
    sets = [real_set(item, budget) for item in items]
    if not sets or any(part is None for part in sets):
        return None
    parts = [part for part in sets if part is not None]
    breaks = tuple(point for part in parts for point in part.breaks)
    return RealSet(breaks, lambda x: all(part.contains(x) for part in parts), all(p.complete for p in parts))


def _from_chain(chain: Node, budget: Budget) -> RealSet | None:
    """Where every link of the chain holds, in its only unknown."""
    sides, signs = chain.args[::2], chain.args[1::2]
    if signs == ("in",):
        return real_set(sides[1], budget)
    if signs == ("notin",):
        inner = real_set(sides[1], budget)
        return (
            None if inner is None else RealSet(inner.breaks, lambda x: not inner.contains(x), inner.complete)
        )
    if not set(signs) <= {"<", ">", "<=", ">=", "!=", "="}:
        return None
    renamed = _with_one_unknown(sides)
    if renamed is None:
        return None
    pairs = zip(pairwise(renamed), signs, strict=True)
    links = [_link(left, sign, right, budget) for (left, right), sign in pairs]
    if any(link is None for link in links):
        return None
    parts = [link for link in links if link is not None]
    breaks = tuple(point for part in parts for point in part.breaks)
    return RealSet(breaks, lambda x: all(part.contains(x) for part in parts), all(p.complete for p in parts))


def _with_one_unknown(sides: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """The sides with their only variable, or their only f(x), renamed; None where there are more or none."""
    labels = {part for side in sides for part in walk(side) if part.head == "apply"}
    if len(labels) == 1:
        label = next(iter(labels))
        sides = tuple(_replace(side, label) for side in sides)
    names = {name for side in sides for name in symbols(side)}
    if len(names) != 1 or (labels and Unknown not in names):
        return None
    name = symbol(next(iter(names)))
    return tuple(_replace(side, name) for side in sides)


def _replace(node: Node, old: Node) -> Node:
    if node == old:
        return symbol(Unknown)
    return Node(
        node.head, tuple(_replace(part, old) if isinstance(part, Node) else part for part in node.args)
    )


def _link(left: Node, sign: str, right: Node, budget: Budget) -> RealSet | None:
    gap = Node("+", (left, Node("neg", (right,))))

    def sign_at(x: Fraction) -> int | None:
        value = exact(gap, {Unknown: x})
        if value is None:
            try:
                number = evaluate(gap, {Unknown: x}, budget)
            except NoValue:
                return None
            if not number.is_real:
                return None
            value = _to_fraction(number.fine)
            if abs(value) <= CLOSE:
                return 0
        elif abs(value) <= CLOSE * abs(x):  # x itself may be a root rounded to a hundred digits
            return 0
        return (value > 0) - (value < 0)

    allowed = {"<": (-1,), ">": (1,), "<=": (-1, 0), ">=": (1, 0), "!=": (-1, 1), "=": (0,)}[sign]
    root = _linear_root(gap)
    return RealSet(() if root is None else (root,), lambda x: sign_at(x) in allowed, root is not None)


def _linear_root(gap: Node) -> Fraction | None:
    values = [exact(gap, {Unknown: Fraction(x)}) for x in (0, 1, 2, 7)]
    if any(value is None for value in values):
        return None
    zero, one, two, seven = (value for value in values if value is not None)
    slope = one - zero
    linear = slope != 0 and two - one == slope and seven - zero == 7 * slope
    return -zero / slope if linear else None


def _test_places(one: RealSet, other: RealSet) -> list[Fraction]:
    breaks = sorted(set(one.breaks + other.breaks))
    places = list(breaks)
    distinct = [
        point for index, point in enumerate(breaks) if index == 0 or not _close(point, breaks[index - 1])
    ]
    for left, right in pairwise(distinct):
        places += [
            left + (right - left) * Fraction(k, 7)
            for k in ((3,) if one.complete and other.complete else range(1, 7))
        ]
    if distinct:
        low, high = distinct[0], distinct[-1]
        places += [
            low - abs(low) - 1,
            high + abs(high) + 1,
            low - 50 * (abs(low) + 1),
            high + 50 * (abs(high) + 1),
        ]
    else:
        places += [Fraction(0), Fraction(1), Fraction(-1)]
    if not (one.complete and other.complete):
        places += GRID
    return places
