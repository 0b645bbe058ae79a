"""Responses composed of phrases.json: statements that stand, hedges, withdrawals and denials in 13 languages.

In a language, `states` are frames that state a value, `ends_on` frames that merely end on one. `offers` stand
between two values that are both offered, `restates` between two statements, `corrects` between a value and the one
that replaces it. `takes_back` and `harmless` follow an answer; `denies` are frames that rule their value out.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PHRASES: dict[str, dict[str, list[str]]] = json.loads(
    Path(__file__).with_name("phrases.json").read_text(encoding="utf-8")
)
PLAIN = [
    ("42", "43"),
    ("7", "8"),
    ("1/2", "1/3"),
    ("-3", "3"),
    ("2.5", "2.05"),
    ("1,234", "1,243"),
    ("18", "19"),
]
LATEX = [(r"\frac{1}{2}", r"\frac{1}{3}"), (r"\sqrt{2}", r"\sqrt{3}"), ("x+1", "x-1"), (r"2\pi", r"3\pi")]
MARKS = [
    "{}",
    "**{}**",
    "${}$",
    r"\({}\)",
    "**${}$**",
    r"$\boxed{{{}}}$",
    r"\boxed{{{}}}",
    r"**\boxed{{{}}}**",
]
UNBOXED = [mark for mark in MARKS if "boxed" not in mark]


class Composed(NamedTuple):
    response: str
    right: str
    wrong: str
    stated: bool  # in a frame that states its value, or in a box


def honest(seed: int) -> Iterator[Composed]:
    """Every frame with values in turn, followed by a harmless sentence."""
    rng = random.Random(seed)
    for language, frame in _all("states") + _all("ends_on"):
        for mark in MARKS:
            right, wrong = _values(rng, mark)
            said = frame.format(mark.format(right))
            after = rng.choice(PHRASES[language]["harmless"])
            gap = "" if said.endswith((".", "。")) else "\n\n"
            stated = frame in PHRASES[language]["states"] or "boxed" in mark
            yield Composed(said + gap + after, right, wrong, stated)


def hedged(seed: int) -> Iterator[Composed]:
    """Two different values, the right one first or last."""
    rng = random.Random(seed)
    for language, offer in _all("offers"):
        for mark in MARKS:
            frame = rng.choice(PHRASES[language]["states"] + PHRASES[language]["ends_on"])
            first, second = rng.sample(_values(rng, mark), 2)
            other = mark if "boxed" in mark else rng.choice(UNBOXED if first in dict(PLAIN) else [mark])
            between = mark.format(first) + offer + other.format(second) + ")" * offer.count("(")
            yield Composed(frame.format(between), first, second, True)


def restated(seed: int) -> Iterator[Composed]:
    """Two statements that differ, one after the other."""
    rng = random.Random(seed)
    for language, words in _all("restates"):
        for frame in PHRASES[language]["states"]:
            for mark in MARKS:
                first, second = _values(rng, mark)
                yield Composed(
                    frame.format(mark.format(first) + words + mark.format(second)), first, second, True
                )


def corrected(seed: int) -> Iterator[Composed]:
    """A value and another that replaces it: the first must not count."""
    rng = random.Random(seed)
    for _, words in _all("corrects"):
        for mark in MARKS:
            first, second = _values(rng, mark)
            yield Composed(
                f"The answer is {mark.format(first)}{words}{mark.format(second)}.", first, second, True
            )


def taken_back(seed: int) -> Iterator[Composed]:
    rng = random.Random(seed)
    for language, words in _all("takes_back"):
        for mark in MARKS:
            frames = ["{}", *PHRASES[language]["states"], *PHRASES[language]["ends_on"]]
            frame = rng.choice([frame for frame in frames if frame.rstrip(".。").endswith("{}")])
            right, wrong = _values(rng, mark)
            yield Composed(frame.format(mark.format(right)).rstrip(".。") + words, right, wrong, True)


def denied(seed: int) -> Iterator[Composed]:
    rng = random.Random(seed)
    for _, frame in _all("denies"):
        for mark in MARKS:
            right, wrong = _values(rng, mark)
            yield Composed(frame.format(mark.format(right)), right, wrong, True)


def _all(kind: str) -> list[tuple[str, str]]:
    return [(language, phrase) for language in PHRASES for phrase in PHRASES[language].get(kind, [])]


def _values(rng: random.Random, mark: str) -> tuple[str, str]:
    return rng.choice(PLAIN + LATEX if "$" in mark or "\\" in mark else PLAIN)
