r"""Integers and fractions too long to write out, by their remainders modulo three primes of about 70 bits.

`2 \cdot 2^{70000}` is `2^{70001}`, and `9^{9^9}` is not `9^{9^9} + 1`: off by one is seen at any size. Different
numbers share all three remainders with a chance of one in 10^{60}.
"""

from __future__ import annotations

from fractions import Fraction

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.exact import exact
from foresail.rewards.notation.tree import Node

PRIMES = (314159265358979323861, 271828182845904523609, 141421356237309504911)
MAX_FACTORIAL = 20_000
POWER = 40  # work for one


def remainders(node: Node, budget: Budget) -> tuple[int, ...] | None:
    """remainders(parse("2^{70000}")) -> three numbers; None where the value is not rational, or cannot be told."""
    found = [_remainder(node, prime, budget) for prime in PRIMES]
    known = [remainder for remainder in found if remainder is not None]
    return tuple(known) if len(known) == len(PRIMES) else None


def _remainder(node: Node, prime: int, budget: Budget) -> int | None:
    budget.spend(4)
    if node.head in ("number", "base"):
        return _of_fraction(Fraction(node.args[0] if node.head == "number" else node.args[2]), prime)
    if node.head == "^":
        return _of_power(node.args[0], node.args[1], prime, budget)
    if node.head == "!":
        return _of_factorial(node.args[0], prime, budget)
    if node.head not in ("+", "*", "/", "neg"):
        return None
    parts = [_remainder(part, prime, budget) for part in node.args]
    values = [part for part in parts if part is not None]
    if len(values) < len(parts):
        return None
    if node.head == "+":
        return sum(values) % prime
    if node.head == "neg":
        return -values[0] % prime
    if node.head == "/":
        return values[0] * pow(values[1], -1, prime) % prime if values[1] else None
    product = 1
    for value in values:
        product = product * value % prime
    return product


def _of_fraction(value: Fraction, prime: int) -> int | None:
    if value.denominator % prime == 0:
        return None
    return value.numerator * pow(value.denominator, -1, prime) % prime


def _of_power(base: Node, exponent: Node, prime: int, budget: Budget) -> int | None:
    below, power = _remainder(base, prime, budget), exact(exponent, budget=budget)
    if below is None or power is None or power.denominator != 1 or below == 0:
        return None
    budget.spend(POWER)
    return pow(below, power.numerator % (prime - 1), prime)  # Fermat: a^(p-1) = 1


def _of_factorial(node: Node, prime: int, budget: Budget) -> int | None:
    value = exact(node, budget=budget)
    if value is None or value.denominator != 1 or not 0 <= value <= MAX_FACTORIAL:
        return None
    budget.spend(value.numerator // 5)
    product = 1
    for factor in range(2, value.numerator + 1):
        product = product * factor % prime
    return product
