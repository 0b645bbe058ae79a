"""One graded pair of `verifier_attack.py`, with the truth that its maker knows."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple


class Case(NamedTuple):
    """`family` names what was tried; `right` is what the verdict should be, by construction or by the oracle.

    None: nobody knows, and only a failure or a slow verdict counts.
    """

    family: str
    response: str
    gold: str
    right: bool | None = False


Maker = Callable[[random.Random], Case]


def boxed(answer: str) -> str:
    return rf"\boxed{{{answer}}}"


def wrong(family: str, answer: str, gold: str) -> Case:
    return Case(family, boxed(answer), gold)


def right(family: str, answer: str, gold: str) -> Case:
    return Case(family, boxed(answer), gold, right=True)


def distinct(rng: random.Random, low: int, high: int, count: int = 2) -> list[int]:
    """Different integers in order: distinct(rng, 0, 9) -> [2, 7]."""
    return sorted(rng.sample(range(low, high), count))


def signed(value: int) -> str:
    """signed(3) -> "+3"; signed(-3) -> "-3"."""
    return f"{value:+d}"
