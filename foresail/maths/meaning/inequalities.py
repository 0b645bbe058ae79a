r"""Inequalities in one unknown as sets of real numbers: `x^2 < 4`, `-\infty < x \le 3`, `|x - 1| \ge 2`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from itertools import pairwise

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import all_known, exact, size_cost
from foresail.maths.meaning.functions import BeyondLimits, NoValue
from foresail.maths.meaning.numeric import evaluate, has_value
from foresail.maths.meaning.points import constants
from foresail.maths.meaning.real_line import (
    GRID,
    MEMBERSHIP_COST,
    TOLERANCE,
    RealSet,
    Rounded,
    close,
    endpoint,
    intersection,
    real_value,
    to_fraction,
)
from foresail.maths.meaning.sign_changes import sign_changes
from foresail.maths.notation.tree import Node, rebuild, symbol, symbols, walk

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
    """Where every link of the chain holds, in its only unknown; None where that is not known."""
    sides, signs = chain.args[::2], chain.args[1::2]
    if not set(signs) <= _ALLOWED.keys():
        return None
    renamed = _with_one_unknown(sides)
    if renamed is None:
        return None
    links = all_known(
        _link(left, sign, right, budget)
        for (left, right), sign in zip(pairwise(renamed), signs, strict=True)
        if not _says_nothing(left, sign, right, budget)
    )
    return None if links is None else intersection(links)


def _says_nothing(left: Node, sign: str, right: Node, budget: Budget) -> bool:
    r"""`-\infty < x` and `x < \infty`."""
    low = endpoint(left, budget) if not symbols(left) else None
    high = endpoint(right, budget) if not symbols(right) else None
    return (low, sign) in _BEYOND or (high, sign) in _OVER


def _with_one_unknown(sides: tuple[Node, ...]) -> tuple[Node, ...] | None:
    """The sides with their only variable, or their only f(x), renamed; None where there are more or none."""
    labels = {part for side in sides for part in walk(side) if part.head == "apply"}
    if len(labels) == 1 and next(iter(labels)) in sides:
        label = next(iter(labels))
        sides = tuple(_replace(side, label) for side in sides)
        labels = set()
    names = {name for side in sides for name in symbols(side)}
    if len(names) != 1 or any(symbols(label) for label in labels):
        return None
    name = symbol(next(iter(names)))
    return tuple(_replace(side, name) for side in sides)


def _replace(node: Node, old: Node) -> Node:
    if node == old:
        return _X
    return rebuild(node, lambda part: _replace(part, old))


def _link(left: Node, sign: str, right: Node, budget: Budget) -> RealSet | None:
    allowed = _ALLOWED[sign]
    if _X in (left, right) and not (symbols(left) and symbols(right)):
        bound = real_value(right if left == _X else left, budget)
        return None if bound is None else _bounded(bound, allowed, 1 if left == _X else -1, budget)
    difference = Node("+", (left, Node("neg", (right,))))
    constants_known = all(symbols(side) or real_value(side, budget) is not None for side in (left, right))
    if not has_value(difference) or not constants_known:
        return None
    value_at = _values_of(difference, budget)

    def contains(x: Fraction) -> bool | None:
        try:
            value = value_at(x)
        except BeyondLimits:
            return None
        return value is not None and (value > 0) - (value < 0) in allowed

    breaks = sign_changes(difference, UNKNOWN, budget)
    if breaks is not None:
        return RealSet(tuple(breaks), contains)
    landmarks = [sign * size for size in constants((left, right), 6, budget) for sign in (1, -1)]
    return RealSet((*_crossings(value_at), *landmarks), contains, complete=False)


def _bounded(bound: Fraction, allowed: tuple[int, ...], turned: int, budget: Budget) -> RealSet:
    r"""`x < \sqrt{3}`: the unknown on one side and a number on the other."""

    def contains(x: Fraction) -> bool:
        budget.spend(MEMBERSHIP_COST + size_cost(x, bound))
        order = 0 if close(x, bound) else (x > bound) - (x < bound)
        return turned * order in allowed

    return RealSet((bound,), contains)


def _values_of(difference: Node, budget: Budget) -> Function:
    """The difference as a function of the unknown: None where it has no real value. Raises BeyondLimits."""

    @cache
    def value_at(x: Fraction) -> Fraction | None:
        budget.spend(MEMBERSHIP_COST)
        nothing = TOLERANCE * max(Fraction(1), abs(x)) if isinstance(x, Rounded) else Fraction(0)
        value = exact(difference, {UNKNOWN: x}, budget)
        if value is None:
            try:
                number = evaluate(difference, {UNKNOWN: x}, budget)
            except BeyondLimits:
                raise
            except NoValue:
                return None
            if not number.is_real:
                return None
            nothing = max(nothing, to_fraction(number.error))
            value = to_fraction(number.fine)
        return value if abs(value) > nothing else Fraction(0)

    return value_at


def _crossings(value_at: Function) -> list[Fraction]:
    """Roots and poles between neighbours of the grid, where the sign changes."""
    crossings: list[Fraction] = []
    known = [(x, value) for x in GRID if (value := _known(value_at, x)) is not None]
    for (left, below), (right, above) in pairwise(known):
        if below * above < 0 and len(crossings) < MAX_CROSSINGS:
            crossings.append(_narrow(value_at, left, right, below > 0))
    return crossings


def _known(value_at: Function, x: Fraction) -> Fraction | None:
    try:
        return value_at(x)
    except BeyondLimits:
        return None


def _narrow(value_at: Function, left: Fraction, right: Fraction, falls: bool) -> Fraction:
    for _ in range(HALVINGS):
        middle = _rounded((left + right) / 2)
        value = _known(value_at, middle)
        if not value:
            return middle
        left, right = (middle, right) if (value > 0) == falls else (left, middle)
    near = ((left + right) / 2).limit_denominator(100)
    if not _known(value_at, near):  # a rational root, or a pole
        return near
    for _ in range(SECANTS):
        low, high = _known(value_at, left), _known(value_at, right)
        if not low or not high or low == high:
            break
        left, right = right, _rounded(right - high * (right - left) / (high - low))
    return right


def _rounded(x: Fraction) -> Rounded:
    """To a hundred digits or so, which keeps the arithmetic short."""
    return Rounded(round(x * 10**110), 10**110)
