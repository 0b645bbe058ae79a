r"""Where two formulas are compared: random rational points, near and far, and around the numbers that both mention.

Formulas made of smooth functions that agree at a few random points agree everywhere. One with a corner or a step
(`|x + 6|`, `\lfloor x / 10^9 \rfloor`) may agree with another up to there, so it is evaluated at many scales and
on both sides of every constant.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, product

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import exact
from foresail.maths.meaning.real_line import real_value
from foresail.maths.meaning.sign_changes import sign_changes
from foresail.maths.notation.tree import Node, number, rebuild, symbols, walk

Point = dict[str, Fraction]

POINTS = 5  # that must agree
TRIES = 16  # points tried to find them
SCALES = (10**2, 10**3, 10**4, 10**6, 10**9, 10**13, 10**19, 10**25, Fraction(1, 10**3), Fraction(1, 10**9))
NEARBY = (Fraction(1, 1009), Fraction(-1, 1013))  # relative distances from a constant
MAX_CONSTANTS, MAX_NAMES = 8, 3
LARGEST = 10**30  # constant around which points are taken
INTEGER_POINTS = 6
INTEGER_LETTERS = frozenset("jklmn")  # that usually stand for integers
MINUS_ONE = Node("neg", (number(1),))
_LOGARITHMS = frozenset(["ln", "log"])  # e^{\\frac12 \\ln x^2} is |x|
_STEPS = frozenset(["abs", "floor", "ceil", "sgn", "max", "min", "mod"])
_CORNERS = frozenset(["sqrt", "root", "arcsin", "arccos", "arctan", "arccot", "arcsec", "arccsc", "arg"])


class Points:
    """Points that are drawn when they are first needed, and stored for the next loop over them."""

    def __init__(self, source: Iterator[Point]) -> None:
        self.drawn: list[Point] = []
        self.source = source

    def __iter__(self) -> Iterator[Point]:
        yield from self.drawn
        for point in self.source:
            self.drawn.append(point)
            yield point


def near_points(names: list[str], whole: frozenset[str], seed: str) -> Iterator[Point]:
    """Points within ±7, more than `POINTS`, as sides may have no value there; `whole` names get integers."""
    rng = random.Random(seed)
    for attempt in range(TRIES):
        point = random_point(rng, names, attempt)
        yield point | {name: _random_integer(rng, attempt) for name in names if name in whole}


def _random_integer(rng: random.Random, attempt: int) -> Fraction:
    return Fraction(rng.randint(100, 900) if attempt % 4 == 3 else rng.randint(-9, 30))


def far_points(
    sides: tuple[Node, Node], heads: frozenset[str], names: list[str], seed: str, budget: Budget
) -> list[Point]:
    """More points for formulas with corners or steps; none for smooth ones."""
    stepped = bool(_STEPS & heads) or any(head.startswith("arc") for head in heads)
    if not stepped and not _LOGARITHMS & heads and not any(has_corners(side, budget) for side in sides):
        return []
    rng = random.Random(seed)
    points = []
    for scale in SCALES if stepped else SCALES[:4]:
        for sign in (1, -1):
            point = {
                name: rng.choice((1, -1)) * scale * Fraction(rng.randint(1, 997), rng.randint(998, 1999))
                for name in names
            }
            name = rng.choice(names)
            points.append(point | {name: sign * abs(point[name])})
    if stepped:  # floors and ceilings part at integers
        points += [{name: Fraction(rng.randint(-9, 9)) for name in names} for _ in range(INTEGER_POINTS)]
        points.append(dict.fromkeys(names, Fraction(0)))
    points += _corners(sides, names, rng, budget)
    known = constants(sides, MAX_CONSTANTS, budget)
    for attempt, (constant, name) in enumerate(product(known, names[:MAX_NAMES])):
        for distance in (*NEARBY, Fraction(0)) if stepped else NEARBY:
            for sign in (1, -1):
                points.append(random_point(rng, names, attempt) | {name: sign * constant * (1 + distance)})
    return points


def integer_names(*sides: Node) -> frozenset[str]:
    """Letters that stand for integers: the n of `(-1)^n` or `x^n`, where a negative x has other powers too."""
    return frozenset(
        name
        for side in sides
        for part in walk(side)
        if part.head == "^" and (part.args[0] == MINUS_ONE or symbols(part.args[0]))
        for name in symbols(part.args[1])
        if name in INTEGER_LETTERS
    )


def has_steps(node: Node) -> bool:
    """Whether a floor, a maximum or the like of a variable is taken, which may jump or bend anywhere."""
    return any(part.head in _STEPS and part.head != "abs" and symbols(part) for part in walk(node))


def has_corners(node: Node, budget: Budget) -> bool:
    r"""Whether a variable stands under bars, a root, a floor or the like; the bars of `\ln |x|` do not count."""
    if not symbols(node):
        return False
    if node.head in _STEPS | _CORNERS:
        return node.head != "root" or not _is_odd(node.args[1], budget)
    if node.head == "^" and symbols(node.args[0]) and not symbols(node.args[1]):
        exponent = exact(node.args[1], budget=budget)
        if exponent is None or exponent.denominator % 2 == 0:
            return True
    if node.head in ("exp", "^") and any(map(_is_log_of_formula, walk(node.args[-1]))):
        return True
    parts = node.args[0].args if node.head in _LOGARITHMS and node.args[0].head == "abs" else node.args
    return any(isinstance(part, Node) and has_corners(part, budget) for part in parts)


def _corners(sides: tuple[Node, Node], names: list[str], rng: random.Random, budget: Budget) -> list[Point]:
    """Where something under bars is zero, the other variables being what they are."""
    inside = dict.fromkeys(part for side in sides for corner in walk(side) for part in _bends_at(corner))
    points = []
    for formula, name in islice(product(inside, names[:MAX_NAMES]), MAX_CONSTANTS):
        point = random_point(rng, names, 0)
        fixed = _with_values(formula, {other: point[other] for other in names if other != name})
        zeros = sign_changes(fixed, name, budget) or []
        points += [point | {name: zero} for zero in zeros[:MAX_CONSTANTS]]
    return points


def _bends_at(corner: Node) -> Iterator[Node]:
    """Formulas at whose zeros the node may bend: the u of |u| and of `\\sqrt{u^2 + 1}`, the a - b of max(a, b)."""
    if corner.head in ("abs", "sgn"):
        yield corner.args[0]
    elif corner.head in ("max", "min") and len(corner.args) > 1:
        yield Node("+", (corner.args[0], Node("neg", (corner.args[1],))))
    if corner.head in _STEPS | _CORNERS:
        yield from (part.args[0] for part in walk(corner) if part.head == "^" and symbols(part.args[0]))


def _with_values(node: Node, values: Point) -> Node:
    if node.head == "symbol":
        return number(values[node.args[0]]) if node.args[0] in values else node
    return rebuild(node, lambda part: _with_values(part, values))


def random_point(rng: random.Random, names: list[str], attempt: int) -> Point:
    """Positive and negative in turns; within ±1 at times, for arcsin and its like."""
    scale = (3, 1, 7, 1, 1, 3, 1, 7)[attempt % 8]
    point = {name: Fraction(rng.randint(1, 997) * scale, rng.randint(998, 1999)) for name in names}
    if attempt % 2 == 0:
        point = {name: value * rng.choice((1, -1)) for name, value in point.items()}
        first = names[attempt // 2 % len(names)]
        point[first] = -abs(point[first])  # so that |x| and x are told apart
    return point


def _is_log_of_formula(node: Node) -> bool:
    r"""`\ln (x+1)^2`, whose half is the logarithm of |x+1|; the `\ln x` of `e^{x \ln x}` is what it seems."""
    return node.head in _LOGARITHMS and node.args[0].head != "symbol" and bool(symbols(node.args[0]))


def _is_odd(index: Node, budget: Budget) -> bool:
    value = exact(index, budget=budget)
    return value is not None and value.denominator == 1 and value.numerator % 2 == 1


def constants(sides: tuple[Node, Node], limit: int, budget: Budget) -> list[Fraction]:
    """The distinct sizes of the numbers that the sides mention, sums of them included."""
    values = (abs(value) for side in sides for value in _mentioned(side, budget) if 0 < abs(value) < LARGEST)
    return list(islice(dict.fromkeys(values), limit))


def _mentioned(node: Node, budget: Budget) -> Iterator[Fraction]:
    if not symbols(node):
        value = real_value(node, budget)
        if value is not None:
            yield value
            return
    if node.head == "+":
        terms = [real_value(term, budget) for term in node.args if not symbols(term)]
        if len(terms) > 1:
            yield sum((term for term in terms if term is not None), Fraction(0))
    for part in node.args:
        if isinstance(part, Node):
            yield from _mentioned(part, budget)
