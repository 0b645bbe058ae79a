"""Amounts of money that people name: budgets, notes, fees. All in hundredths."""

from __future__ import annotations


def round_up(amount: int) -> int:
    """round_up(5088) -> 5500; round_up(229187) -> 230000: to a multiple of 5 or 10 of the second digit."""
    return -(-amount // step_of(amount)) * step_of(amount)


def step_of(amount: int) -> int:
    """Half of a tenth of the amount's power of ten, never below one unit: step_of(5088) -> 500."""
    step = 10 ** (len(str(amount)) - 2) // 2
    return max(100, step)


def fee_of(price: int, tenths: int) -> int:
    """A delivery fee of so many hundredths of the price, in whole units: fee_of(5088, 8) -> 400."""
    return max(100, price * tenths // 10000 * 100)
