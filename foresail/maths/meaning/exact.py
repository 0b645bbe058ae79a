"""Exact values: a tree without irrational parts, carried out in fractions.

`exact(tree)` is None where the value is irrational, undefined or beyond the limits; nothing is ever rounded.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import TypeVar

from foresail.maths.meaning.budget import Budget
from foresail.maths.notation.tree import Node

MAX_BITS = 60_000  # of a numerator or denominator
MAX_FACTORIAL = 3_000
_COUNTING = frozenset(["!", "!!", "binom", "perm"])
_DIVIDING = frozenset(["/", "gcd", "lcm", "floor", "ceil", "max", "min", "sqrt", "root", "log"])

T = TypeVar("T")
Point = Mapping[str, Fraction]
_NOWHERE: Point = {}


def all_known(values: Iterable[T | None]) -> list[T] | None:
    """all_known([1, 2]) -> [1, 2]; all_known([1, None, 2]) -> None, and the 2 is not asked for."""
    known = []
    for value in values:
        if value is None:
            return None
        known.append(value)
    return known


def exact(node: Node, point: Point = _NOWHERE, budget: Budget | None = None) -> Fraction | None:
    """exact(parse("1/2 + 1/3")) -> 5/6; exact(parse("2x"), {"x": 3}) -> 6; exact(parse("\\sqrt2")) -> None."""
    budget = budget or Budget()
    if node.head == "number":
        value: Fraction = node.args[0]
        return value
    if node.head == "symbol":
        return point.get(node.args[0])
    if node.head == "base":
        return Fraction(node.args[2])
    rule = _RULES.get(node.head)
    if rule is None:
        return None
    values = []
    for child in node.args:
        part = exact(child, point, budget)
        if part is None:
            return None
        values.append(part)
    if node.head in ("+", "*") and len(values) > 1:
        return _accumulate(values, operator.add if node.head == "+" else operator.mul, budget)
    budget.spend(_cost(node.head, values))
    result = rule(*values)
    if result is None or not _fits(result):
        return None
    budget.spend(1 + result.numerator.bit_length() // 32 + _reduction_cost(result))
    return result


def size_cost(*values: Fraction) -> int:
    """What dividing, reducing or comparing such numbers costs: the square of their length; usual ones nothing."""
    return (_bits(*values) // 600) ** 2


def _bits(*values: Fraction) -> int:
    return sum(value.numerator.bit_length() + value.denominator.bit_length() for value in values)


def _cost(head: str, values: list[Fraction]) -> int:
    """What a step costs beside its result."""
    if head in _COUNTING:
        return min(abs(round(values[0])), MAX_BITS) // 10
    if head in _DIVIDING:
        return size_cost(*values)
    if (
        head == "^" and values[1].denominator != 1
    ):  # a root of the power, which is refused where it is too long
        bits = _bits(values[0]) * abs(values[1].numerator)
        return (bits // 600) ** 2 if bits <= 2 * MAX_BITS else 0
    return 0


def plain_value(node: Node) -> Fraction | None:
    """The value of an integer or a fraction of integers as they are mostly written; None for anything else."""
    if node.head == "neg":
        inner = plain_value(node.args[0])
        return None if inner is None else -inner
    if node.head == "number" and node.args[1] is None:
        value: Fraction = node.args[0]
        return value
    if node.head == "/" and node.args[0].head in ("number", "neg") and node.args[1].head == "number":
        top, bottom = plain_value(node.args[0]), plain_value(node.args[1])
        return top / bottom if top is not None and bottom else None
    return None


def _accumulate(values: list[Fraction], combine: Callable[..., Fraction], budget: Budget) -> Fraction | None:
    total = values[0]
    for value in values[1:]:
        budget.spend(2 + _reduction_cost(total) + _reduction_cost(value))
        total = combine(total, value)
        if not _fits(total):
            return None
    return total


def _reduction_cost(value: Fraction) -> int:
    """What it costs to keep a fraction in lowest terms: as the square of its length."""
    return (value.denominator.bit_length() // 600) ** 2


def _fits(value: Fraction) -> bool:
    return value.numerator.bit_length() <= MAX_BITS and value.denominator.bit_length() <= MAX_BITS


def _power(base: Fraction, exponent: Fraction) -> Fraction | None:
    if exponent.denominator != 1:
        return _root(_power(base, Fraction(exponent.numerator)), exponent.denominator)
    power = exponent.numerator
    if base == 0:
        return Fraction(0) if power > 0 else None
    if abs(base) == 1:
        return base if power % 2 else Fraction(1)
    size = max(base.numerator.bit_length(), base.denominator.bit_length())
    return base**power if abs(power) * size <= MAX_BITS else None


def _root(value: Fraction | None, index: int) -> Fraction | None:
    """A root that happens to be rational and real: _root(8/27, 3) -> 2/3; _root(-4, 2) -> None."""
    if value is None or value < 0 or index > 64:
        return None
    top, bottom = _integer_root(value.numerator, index), _integer_root(value.denominator, index)
    return None if top is None or bottom is None else Fraction(top, bottom)


def _integer_root(value: int, index: int) -> int | None:
    if index == 2:
        root = math.isqrt(value)
        return root if root * root == value else None
    if value.bit_length() > 1000:
        return None
    root = round(value ** (1 / index))
    return next((near for near in (root - 1, root, root + 1) if near >= 0 and near**index == value), None)


def _nth_root(value: Fraction, index: Fraction) -> Fraction | None:
    if index.denominator != 1 or not 2 <= index.numerator <= 64:
        return None
    if value < 0 and index.numerator % 2:
        root = _root(-value, index.numerator)
        return None if root is None else -root
    return _root(value, index.numerator)


def _whole(value: Fraction, limit: int) -> int | None:
    return value.numerator if value.denominator == 1 and 0 <= value.numerator <= limit else None


def _factorial(value: Fraction, step: int = 1) -> Fraction | None:
    """_factorial(5) -> 120; _factorial(5, 2) -> 5 · 3 · 1."""
    n = _whole(value, MAX_FACTORIAL)
    if n is None:
        return None
    return Fraction(math.factorial(n) if step == 1 else math.prod(range(n, 0, -step)))


def _binomial(n: Fraction, k: Fraction) -> Fraction | None:
    total, part = _whole(n, 100_000), _whole(k, 100_000)
    if total is None or part is None or min(part, total - part) > MAX_FACTORIAL:
        return None
    return Fraction(math.comb(total, part))


def _permutations(n: Fraction, k: Fraction) -> Fraction | None:
    total, part = _whole(n, 100_000), _whole(k, MAX_FACTORIAL)
    return None if total is None or part is None else Fraction(math.perm(total, part))


def _of_integers(function: Callable[..., int], max_values: int) -> Callable[..., Fraction | None]:
    """The function of up to `max_values` integers; None for fractions."""

    def value(*values: Fraction) -> Fraction | None:
        if len(values) > max_values or any(v.denominator != 1 for v in values):
            return None
        return Fraction(function(*(v.numerator for v in values)))

    return value


def _log(value: Fraction, base: Fraction | None = None) -> Fraction | None:
    """A logarithm that is an integer: _log(8, 2) -> 3. Without a base, it may be decimal or natural: None."""
    if base is None or base.denominator != 1 or base <= 1 or value <= 0:
        return None
    inverse = value < 1
    rest = 1 / value if inverse else value
    if rest.denominator != 1:
        return None
    count = round(math.log(rest.numerator) / math.log(base.numerator))
    return Fraction(-count if inverse else count) if base.numerator**count == rest.numerator else None


_RULES: dict[str, Callable[..., Fraction | None]] = {
    "+": lambda value: value,  # several values are accumulated
    "*": lambda value: value,
    "/": lambda top, bottom: top / bottom if bottom else None,
    "^": _power,
    "neg": lambda value: -value,
    "sqrt": lambda value: _root(value, 2),
    "root": _nth_root,
    "!": _factorial,
    "!!": lambda value: _factorial(value, 2),
    "binom": _binomial,
    "perm": _permutations,
    "abs": abs,
    "floor": lambda value: Fraction(math.floor(value)),
    "ceil": lambda value: Fraction(math.ceil(value)),
    "max": lambda *values: max(values),
    "min": lambda *values: min(values),
    "gcd": _of_integers(math.gcd, 100),
    "lcm": _of_integers(math.lcm, 20),
    "log": _log,
    "%": lambda value: value / 100,
}
