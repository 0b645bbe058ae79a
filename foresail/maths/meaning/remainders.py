r"""Integers and fractions too long to write out, by their remainders modulo three random primes of 80 bits.

`2 \cdot 2^{70000}` is `2^{70001}`, and `9^{9^9}` is not `9^{9^9} + 1`. Different numbers have the same three
remainders with a chance of one in 10^{60}. Each process draws its primes at random, so no response can fit them.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from fractions import Fraction
from functools import cache, reduce
from itertools import islice

from foresail.maths.meaning.budget import Budget
from foresail.maths.meaning.exact import all_known, exact
from foresail.maths.notation.tree import Node

BITS = 80
WITNESSES = 20  # of a prime; a composite passes each with a chance below a quarter
MAX_FACTORIAL = 20_000
POWER_COST = 40


def remainders(node: Node, budget: Budget) -> tuple[int, ...] | None:
    """remainders(parse("2^{70000}")) -> three numbers; None where the value is not rational or not known."""
    by_prime = all_known(_remainder(node, prime, budget) for prime in _primes())
    return None if by_prime is None else tuple(by_prime)


@cache
def _primes() -> tuple[int, ...]:
    rng = random.SystemRandom()
    candidates = iter(lambda: rng.getrandbits(BITS) | 1 << BITS | 1, None)
    return tuple(islice((number for number in candidates if _is_prime(number, rng)), 3))


def _is_prime(number: int, rng: random.Random) -> bool:
    """The Miller-Rabin test."""
    twos = (number - 1 & 1 - number).bit_length() - 1
    odd = (number - 1) >> twos
    for _ in range(WITNESSES):
        power = pow(rng.randrange(2, number - 1), odd, number)
        if power == 1 or any(pow(power, 2**square, number) == number - 1 for square in range(twos)):
            continue
        return False
    return True


def _remainder(node: Node, prime: int, budget: Budget) -> int | None:
    budget.spend(4)
    if node.head in ("number", "base"):
        value = Fraction(node.args[0] if node.head == "number" else node.args[2])
        budget.spend((value.numerator.bit_length() + value.denominator.bit_length()) // 200)
        return _of_fraction(value, prime)
    if node.head == "^":
        return _of_power(node.args[0], node.args[1], prime, budget)
    if node.head == "!":
        return _of_factorial(node.args[0], prime, budget)
    if node.head not in ("+", "*", "/", "neg"):
        return None
    values = all_known([_remainder(part, prime, budget) for part in node.args])
    if values is None:
        return None
    if node.head == "+":
        return sum(values) % prime
    if node.head == "neg":
        return -values[0] % prime
    if node.head == "/":
        return values[0] * pow(values[1], -1, prime) % prime if values[1] else None
    return _product(values, prime)


def _product(factors: Iterable[int], prime: int) -> int:
    return reduce(lambda product, factor: product * factor % prime, factors, 1)


def _of_fraction(value: Fraction, prime: int) -> int | None:
    if value.denominator % prime == 0:
        return None
    return value.numerator * pow(value.denominator, -1, prime) % prime


def _of_power(base: Node, exponent: Node, prime: int, budget: Budget) -> int | None:
    below, power = _remainder(base, prime, budget), exact(exponent, budget=budget)
    if below is None or power is None or power.denominator != 1 or below == 0:
        return None
    budget.spend(POWER_COST)
    return pow(below, power.numerator % (prime - 1), prime)  # Fermat: a^(p-1) = 1


def _of_factorial(node: Node, prime: int, budget: Budget) -> int | None:
    value = exact(node, budget=budget)
    if value is None or value.denominator != 1 or not 0 <= value <= MAX_FACTORIAL:
        return None
    budget.spend(value.numerator // 5)
    return _product(range(2, value.numerator + 1), prime)
