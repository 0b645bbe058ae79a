r"""Integers and fractions too long to write out, by their remainders modulo three random primes of 80 bits.

`2 \cdot 2^{70000}` is `2^{70001}`, and `9^{9^9}` is not `9^{9^9} + 1`: off by one is seen at any size. Different
numbers share all three remainders with a chance of one in 10^{60}, and nobody can aim at primes that each process
draws for itself.
"""

from __future__ import annotations

import random
from fractions import Fraction
from functools import cache
from itertools import islice

from foresail.rewards.meaning.budget import Budget
from foresail.rewards.meaning.exact import exact
from foresail.rewards.notation.tree import Node

BITS = 80
WITNESSES = 20  # of a prime; a composite passes each with a chance below a quarter
MAX_FACTORIAL = 20_000
POWER = 40  # work for one


def remainders(node: Node, budget: Budget) -> tuple[int, ...] | None:
    """remainders(parse("2^{70000}")) -> three numbers; None where the value is not rational, or cannot be told."""
    found = []
    for prime in _primes():
        remainder = _remainder(node, prime, budget)
        if remainder is None:
            return None
        found.append(remainder)
    return tuple(found)


@cache
def _primes() -> tuple[int, ...]:
    draw = random.SystemRandom()
    candidates = iter(lambda: draw.getrandbits(BITS) | 1 << BITS | 1, None)
    return tuple(islice((number for number in candidates if _is_prime(number, draw)), 3))


def _is_prime(number: int, draw: random.Random) -> bool:
    """The test of Miller and Rabin."""
    twos = (number - 1 & 1 - number).bit_length() - 1
    odd = (number - 1) >> twos
    for _ in range(WITNESSES):
        power = pow(draw.randrange(2, number - 1), odd, number)
        if power == 1 or any(pow(power, 2**square, number) == number - 1 for square in range(twos)):
            continue
        return False
    return True


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
