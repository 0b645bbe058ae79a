r"""Inequalities in one unknown as sets of real numbers: `x^2 < 4`, `-\infty < x \le 3`, `|x - 1| \ge 2`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.exact import exact
from foresail.rewards.meaning.numeric import NoValue, evaluate
from foresail.rewards.meaning.places import (
    CLOSE,
    GRID,
    LOOK,
    RealSet,
    close,
    end,
    intersection,
    place,
    to_fraction,
)
from foresail.rewards.notation.tree import Node, rebuild, symbol, symbols, walk

UNKNOWN = "\0unknown"
_X = symbol(UNKNOWN)
MAX_CROSSINGS = 6  # that are looked for
HALVINGS = 12  # of a cell of the grid in which the sign changes
SECANTS = 10  # steps from there to a hundred digits

Function = Callable[[Fraction], Fraction | None]

_ALLOWED = {"<": (-1,), ">": (1,), "<=": (-1, 0), ">=": (1, 0), "!=": (-1, 1), "=": (0,)}
_BEYOND = {("-", "<"), ("-", "<="), ("+", ">"), ("+", ">=")}  # true of every number on the right
_OVER = {("+", "<"), ("+", "<="), ("-", ">"), ("-", ">=")}  # true of every number on the left


def solution_set(chain: Node, budget: Budget) -> RealSet | None:
    """Where every link of the chain holds, in its only unknown; None where there is not exactly one."""
    sides, signs = chain.args[::2], chain.args[1::2]
    if not set(signs) <= _ALLOWED.keys():
        return None
    renamed = _with_one_unknown(sides)
    if renamed is None:
        return None
    links = []
    for (left, right), sign in zip(pairwise(renamed), signs, strict=True):
        if not _says_nothing(left, sign, right, budget):
            links.append(_link(left, sign, right, budget))
    return intersection(links)


def _says_nothing(left: Node, sign: str, right: Node, budget: Budget) -> bool:
    r"""`-\infty < x` and `x < \infty`."""
    low = end(left, budget) if not symbols(left) else None
    high = end(right, budget) if not symbols(right) else None
    return (low, sign) in _BEYOND or (high, sign) in _OVER


def _with_one_unknown(sides: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """The sides with their only variable, or their only f(x), renamed; None where there are more or none."""
    labels = {part for side in sides for part in walk(side) if part.head == "apply"}
    if len(labels) == 1:
        label = next(iter(labels))
        sides = tuple(_replace(side, label) for side in sides)
    names = {name for side in sides for name in symbols(side)}
    if len(names) != 1 or (labels and UNKNOWN not in names):
        return None
    name = symbol(next(iter(names)))
    return tuple(_replace(side, name) for side in sides)


def _replace(node: Node, old: Node) -> Node:
    if node == old:
        return _X
    return rebuild(node, lambda part: _replace(part, old))


def _link(left: Node, sign: str, right: Node, budget: Budget) -> RealSet:
    gap = Node("+", (left, Node("neg", (right,))))
    allowed = _ALLOWED[sign]

    @cache
    def value_at(x: Fraction) -> Fraction | None:
        budget.spend(LOOK)
        value = exact(gap, {UNKNOWN: x}, budget)
        if value is not None:  # x itself may be a root rounded to a hundred digits
            return value if abs(value) > CLOSE * abs(x) else Fraction(0)
        try:
            number = evaluate(gap, {UNKNOWN: x}, budget)
        except NoValue:
            return None
        if not number.is_real:
            return None
        value = to_fraction(number.fine)
        return value if abs(value) > CLOSE else Fraction(0)

    def contains(x: Fraction) -> bool:
        value = value_at(x)
        return value is not None and (value > 0) - (value < 0) in allowed

    bound = _bound(left, right, budget)
    if bound is not None:
        turned = -1 if right == _X else 1

        def lies(x: Fraction) -> bool:
            budget.spend(LOOK)
            return turned * _order(x, bound) in allowed

        return RealSet((bound,), lies)
    root = _linear_root(gap, budget)
    if root is not None:
        return RealSet((root,), contains)
    return RealSet(tuple(_crossings(value_at)), contains, complete=False)


def _bound(left: Node, right: Node, budget: Budget) -> Fraction | None:
    r"""What the unknown is compared with, as in `x < \sqrt{3}`."""
    if left == _X:
        return place(right, budget)
    return place(left, budget) if right == _X else None


def _order(one: Fraction, other: Fraction) -> int:
    return 0 if close(one, other) else (one > other) - (one < other)


def _linear_root(gap: Node, budget: Budget) -> Fraction | None:
    values = [exact(gap, {UNKNOWN: Fraction(x)}, budget) for x in (0, 1, 2, 7)]
    if any(value is None for value in values):
        return None
    zero, one, two, seven = (value for value in values if value is not None)
    slope = one - zero
    linear = slope != 0 and two - one == slope and seven - zero == 7 * slope
    return -zero / slope if linear else None


def _crossings(value_at: Function) -> list[Fraction]:
    """Roots and poles between neighbours of the grid, where the sign changes."""
    found: list[Fraction] = []
    known = [(x, value) for x in GRID if (value := value_at(x)) is not None]
    for (left, below), (right, above) in pairwise(known):
        if below * above < 0 and len(found) < MAX_CROSSINGS:
            found.append(_narrow(value_at, left, right, below > 0))
    return found


def _narrow(value_at: Function, left: Fraction, right: Fraction, falls: bool) -> Fraction:
    for _ in range(HALVINGS):
        middle = _rounded((left + right) / 2)
        value = value_at(middle)
        if not value:
            return middle
        left, right = (middle, right) if (value > 0) == falls else (left, middle)
    near = ((left + right) / 2).limit_denominator(100)
    if not value_at(near):  # a rational root, or a pole
        return near
    for _ in range(SECANTS):
        low, high = value_at(left), value_at(right)
        if not low or not high or low == high:
            break
        left, right = right, _rounded(right - high * (right - left) / (high - low))
    return right


def _rounded(x: Fraction) -> Fraction:
    """To a hundred digits or so, which keeps the arithmetic short."""
    return Fraction(round(x * 10**110), 10**110)
