r"""Where a formula in one unknown may change its sign: `x^2 - 5x + 6` at 2 and 3, `|x| - 1` at ±1.

All of them are found for quotients of polynomials, also with a few absolute values in them. Between two extremes of
a polynomial that are neighbours lies at most one root, so roots are bracketed by those of the derivative. Extremes
are in the list too, because a double root is one.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product, zip_longest
from typing import Any

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import all_known, size_cost
from foresail.maths.meaning.numeric import context
from foresail.maths.meaning.real_line import Rounded, real_value, to_fraction
from foresail.maths.notation.tree import Node, heads, rebuild, symbol, symbols, walk

MAX_DEGREE = 12
MAX_BARS = 3  # absolute values in one formula
MAX_STEPS = 400  # towards one root
_TOLERANCE = Fraction(1, 10**90)  # relative

Polynomial = list[Fraction]  # the constant term first
Quotient = tuple[Polynomial, Polynomial]


def sign_changes(formula: Node, unknown: str, budget: Budget) -> list[Fraction] | None:
    """Every x where the formula's sign may change, and perhaps others; None where not all can be found."""
    bars = list(dict.fromkeys(part for part in walk(formula) if part.head == "abs"))
    if len(bars) > MAX_BARS or any("abs" in heads(bar.args[0]) for bar in bars):
        return None
    smooth = [bar.args[0] for bar in bars]
    for signs in product((False, True), repeat=len(bars)):
        smooth.append(_without_bars(formula, dict(zip(bars, signs, strict=True))))
    places: set[Fraction] = set()
    for part in smooth:
        quotient = _quotient(part, unknown, budget)
        if quotient is None:
            return None
        for polynomial in quotient:
            rounded = any(isinstance(value, Rounded) for value in polynomial)
            trimmed = _without_leading_zeros(polynomial, _TOLERANCE if rounded else Fraction(0))
            terms = [context().mpf(value.numerator) / value.denominator for value in trimmed]
            places.update(map(_as_fraction, _roots_and_extremes(terms, budget)))
    return sorted(places)


def _without_bars(node: Node, negative: dict[Node, bool]) -> Node:
    """Every |u| as u or, where `negative` says so, as -u."""
    if node in negative:
        return Node("neg", node.args) if negative[node] else node.args[0]
    return rebuild(node, lambda part: _without_bars(part, negative))


def _quotient(node: Node, unknown: str, budget: Budget) -> Quotient | None:
    """Numerator and denominator; None where the formula is no quotient of polynomials of a small degree."""
    budget.spend(8)
    if node == symbol(unknown):
        return [Fraction(0), Fraction(1)], [Fraction(1)]
    if not symbols(node):
        value = real_value(node, budget)
        return None if value is None else ([value], [Fraction(1)])
    if node.head == "^":
        return _power(node.args[0], real_value(node.args[1], budget), unknown, budget)
    if node.head not in ("+", "*", "/", "neg"):
        return None
    parts = all_known([_quotient(part, unknown, budget) for part in node.args])
    if parts is None:
        return None
    top, bottom = parts[0]
    if node.head == "neg":
        return [_rounded_like(-value, value) for value in top], bottom
    for above, below in parts[1:]:
        if node.head == "/":
            above, below = below, above
        _spend(budget, top, bottom, above, below)
        if node.head == "+" and bottom == below:
            top = _add(top, above)
        elif node.head == "+":
            top, bottom = _add(_times(top, below), _times(above, bottom)), _times(bottom, below)
        else:
            top, bottom = _times(top, above), _times(bottom, below)
        if max(len(top), len(bottom)) > MAX_DEGREE + 1:
            return None
    return top, bottom


def _power(base: Node, exponent: Fraction | None, unknown: str, budget: Budget) -> Quotient | None:
    quotient = _quotient(base, unknown, budget)
    if quotient is None or exponent is None or exponent.denominator != 1 or abs(exponent) > MAX_DEGREE:
        return None
    top, bottom = [Fraction(1)], [Fraction(1)]
    for _ in range(abs(exponent.numerator)):
        _spend(budget, top, bottom, *quotient)
        top, bottom = _times(top, quotient[0]), _times(bottom, quotient[1])
        if max(len(top), len(bottom)) > MAX_DEGREE + 1:
            return None
    return (top, bottom) if exponent > 0 else (bottom, top)


def _spend(budget: Budget, *polynomials: Polynomial) -> None:
    """What a product of them costs: every two coefficients are multiplied and the results kept in lowest terms."""
    length = sum(map(len, polynomials))
    budget.spend(length**2 // 4 + length * sum(size_cost(*polynomial) for polynomial in polynomials))


def _add(one: Polynomial, other: Polynomial) -> Polynomial:
    pairs = zip_longest(one, other, fillvalue=Fraction(0))
    return [_rounded_like(left + right, left, right) for left, right in pairs]


def _rounded_like(result: Fraction, *parts: Fraction) -> Fraction:
    """The result as a rounded number where one of the parts is: arithmetic on its own forgets that."""
    return Rounded(result) if any(isinstance(part, Rounded) for part in parts) else result


def _times(one: Polynomial, other: Polynomial) -> Polynomial:
    result = [Fraction(0)] * (len(one) + len(other) - 1)
    for (i, left), (j, right) in product(enumerate(one), enumerate(other)):
        term = _rounded_like(left * right, left, right)
        result[i + j] = _rounded_like(result[i + j] + term, term)
    return result


def _without_leading_zeros(polynomial: Polynomial, nothing: Fraction) -> Polynomial:
    """Without the highest terms that are zero, or as near to it as the rounding errors of π - π."""
    scale = max(map(abs, polynomial))
    length = len(polynomial)
    while length and abs(polynomial[length - 1]) <= nothing * scale:
        length -= 1
    return polynomial[:length]


def _roots_and_extremes(terms: list[Any], budget: Budget) -> list[Any]:
    """The real roots of a polynomial and of all its derivatives, in order."""
    ctx = context()
    if len(terms) < 2:
        return []
    slope = [value * power for power, value in enumerate(terms)][1:]
    extremes = _roots_and_extremes(slope, budget)
    bound = 1 + 2 * max(abs(value / terms[-1]) for value in terms)
    downwards, slope_downwards = terms[::-1], slope[::-1]
    roots = []
    for left, right in pairwise([-bound, *extremes, bound]):
        if ctx.polyval(downwards, left) * ctx.polyval(downwards, right) < 0:
            roots.append(_root_between(downwards, slope_downwards, left, right, budget))
    return sorted(extremes + roots)


def _root_between(terms: list[Any], slope: list[Any], left: Any, right: Any, budget: Budget) -> Any:
    """Newton's steps while they stay inside, halving otherwise."""
    ctx = context()
    rising = ctx.polyval(terms, right) > 0
    x = (left + right) / 2
    for _ in range(MAX_STEPS):
        budget.spend(4 + 2 * len(terms))
        value, steepness = ctx.polyval(terms, x), ctx.polyval(slope, x)
        if value == 0:
            break
        left, right = (left, x) if (value > 0) == rising else (x, right)
        step = x - value / steepness if steepness else left
        following = step if left < step < right else (left + right) / 2
        if abs(following - x) <= abs(x) * ctx.mpf(10) ** -130:
            break
        x = following
    return x


def _as_fraction(root: Any) -> Fraction:
    """The root as it is, or the simple fraction that it is to ninety digits."""
    value = to_fraction(root)
    simple = value.limit_denominator(10_000)
    return simple if abs(simple - value) <= _TOLERANCE * max(Fraction(1), abs(value)) else value
