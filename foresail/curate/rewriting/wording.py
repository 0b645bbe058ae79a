"""The words of `wording.toml`: those that an answer depends on, units, and talk about the work itself."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from foresail.curate.rewriting.quantities import Quantity

SENTENCES = re.compile(r"[.!?\n。！？]+")

WORDS = re.compile(r"[^\W\d_]+")
BESIDE = re.compile(r"[^\W\d_]+(?:/[^\W\d_]+)?|[$€£¥₱฿₫¢°]")
NEAR = 3  # words behind a number among which a rewriting may have its unit


@cache
def wording() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("wording.toml").read_text(encoding="utf-8"))


@cache
def patterns(place: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{one})" for one in wording()["meta"][place]), re.IGNORECASE)


@cache
def unit_names() -> Mapping[str, str]:
    return {form: name for name, forms in wording()["units"].items() for form in forms}


def words_of(text: str) -> Counter[str]:
    plain = re.sub(r"n['\u2019]t\b|(?<=can)not\b", " not", text.replace("%", " percent "))
    return Counter(word.lower() for word in WORDS.findall(plain))


# What a model says about its work.


def meta_talk(text: str, original: str) -> str:
    """The words that are about the rewriting, or ""; what the original says too is none."""
    for place in ("first", "anywhere"):
        for match in patterns(place).finditer(text):
            if not patterns(place).search(original):
                return match[0].strip()
    return ""


def stops_asking(before: str, after: str) -> bool:
    """Whether the question is gone: no question mark, and no further word that asks."""
    asks = patterns("asks")
    if any(mark in after for mark in "?？؟") or asks.search(before) is None:
        return False
    narrated = sum(match[0] not in "?？؟" for match in asks.finditer(before))
    if not any(mark in before for mark in "?？؟"):
        narrated -= 1
    return sum(1 for _ in asks.finditer(after)) <= narrated


# Constraints.


def lost_constraint(before: str, after: str) -> str:
    """What changed, in words, or ""."""
    old, new = words_of(before), words_of(after)
    for name, group in wording()["groups"].items():
        words = group["words"]
        if has(old, words) and not has(new, (*words, *group.get("also", ()))):
            return f"nothing of {name}: {', '.join(word for word in words if old[word])}"
    negation = wording()["negation"]
    hard, soft = negation["hard"], (*negation["hard"], *negation["soft"])
    for one, other, what, enough in (
        (old, new, "lost", (*soft, *negation["positive"])),
        (new, old, "added", soft),
    ):
        if has(one, hard) and not has(other, enough):
            return f"a negation was {what}: {', '.join(word for word in hard if one[word])}"
    for pair in wording()["opposite"]:
        for mine, theirs in ((pair["one"], pair["other"]), (pair["other"], pair["one"])):
            if has(old, mine) > has(new, mine) and has(new, theirs) > has(old, theirs):
                gone = [word for word in mine if old[word] > new[word]]
                come = [word for word in theirs if new[word] > old[word]]
                return f"{', '.join(gone)} became {', '.join(come)}"
    return ""


def has(words: Mapping[str, int], group: Sequence[str]) -> int:
    return sum(words.get(word, 0) for word in group)


# Units.


def units_beside(text: str, quantity: Quantity, near: int = 1) -> set[str]:
    """The units right behind a number, or the sign before it."""
    units = set()
    before = text[max(0, quantity.start - 3) : quantity.start].strip().lower()
    for size in (1, 2):
        sign, earlier = before[-size:], before[:-size]
        if sign in unit_names() and not earlier[-1:].isalnum():
            units.add(unit_names()[sign])
    place = quantity.end
    for _ in range(near):
        match = BESIDE.search(text, place, place + 30)
        if match is None or re.search(r"[.,;:?!\x00()]", text[place : match.start()]):
            break
        for form in (match[0].lower(), match[0].lower().partition("/")[0]):
            if form in unit_names() and (len(form) > 1 or match.start() - place <= 1):
                units.add(unit_names()[form])
                break
        place = match.end()
    return units


def lost_unit(before: str, old: Sequence[Quantity], after: str, new: Sequence[Quantity]) -> str:
    """A number that has lost its unit, or ""."""
    left = [(one, units_beside(after, one, NEAR)) for one in new]
    for quantity in old:
        if units := units_beside(before, quantity):
            place = next((n for n, (one, its) in enumerate(left) if one.same(quantity) and units & its), None)
            if place is None:
                return f"{quantity.text} {', '.join(sorted(units))}"
            left.pop(place)
    return ""


def repeated(text: str) -> int:
    """Sentences that stand there again."""
    found = [" ".join(part.split()) for part in SENTENCES.split(text)]
    long = [part for part in found if len(part) >= 12]
    return len(long) - len({*long})
