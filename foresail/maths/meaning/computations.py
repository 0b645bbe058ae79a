r"""Computations that a response may name beside their result: `\gcd(12, 18) = 6`, `\sum_{k=1}^{3} k = 6`."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import all_known, exact
from foresail.maths.notation.tree import Node, symbols

MAX_TERMS = 200


def is_computation(node: Node) -> bool:
    """Whether a side of an equation names what is to be worked out: a sum, an integral, a remainder, a maximum."""
    return node.head == "opaque" or (node.head in _COMPUTED and not symbols(node))


def result(node: Node, budget: Budget) -> Fraction | None:
    """The exact value of such a computation, where it is short; None for integrals, limits and endless sums."""
    if node.head == "mod":
        values = all_known(exact(part, budget=budget) for part in node.args)
        return values[0] % values[1] if values and values[1] > 0 else None
    if node.head == "opaque":
        return _over_range(node, budget)
    return exact(node, budget=budget)


def _over_range(node: Node, budget: Budget) -> Fraction | None:
    """A sum or a product over a few integers."""
    combine = _COMBINED.get(node.args[0])
    if combine is None or len(node.args) != 4:
        return None
    body, lower, upper = node.args[1:]
    if lower.head != "chain" or lower.args[0].head != "symbol" or lower.args[1::2] != ("=",):
        return None
    ends = all_known(exact(end, budget=budget) for end in (lower.args[2], upper))
    if ends is None or any(end.denominator != 1 for end in ends) or not 0 <= ends[1] - ends[0] < MAX_TERMS:
        return None
    total = Fraction(node.args[0] == "prod")
    for index in range(int(ends[0]), int(ends[1]) + 1):
        term = exact(body, {lower.args[0].args[0]: Fraction(index)}, budget)
        if term is None:
            return None
        total = combine(total, term)
    return total


_COMPUTED = frozenset(["mod", "gcd", "lcm", "max", "min"])
_COMBINED: dict[str, Callable[[Fraction, Fraction], Fraction]] = {
    "sum": lambda total, term: total + term,
    "prod": lambda total, term: total * term,
}
