"""The numbers of a text, in digits and in words, with the units that stand beside them.

    find_quantities("Twice as many as 1,200 km, or 5%") -> 2, 1200 (km), 1/20
    lost_quantities(before, after) -> those of the first text that the second has not as often

`loose` reads 1.234 and 1,234 as what they mean in any language: 1.234 or 1234.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
DIGITS = re.compile(
    r"(?<![\w])[-\u2212]?\d+(?:[.,]\d+)*|\d+(?:[.,]\d+)*|[\u00b2\u00b3\u00b9\u2070-\u2079\u00bc-\u00be\u2150-\u215e]"
)
ENGLISH = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
PERCENT = re.compile(r"\s?(?:%|\uff05|per ?cent\b)", re.IGNORECASE)
SIZE = re.compile(r"[\s-]{1,2}([A-Za-z]+)")
WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")
JOINED = re.compile(r"(?:\s*-\s*|\s+(?:and\s+)?)\Z", re.IGNORECASE)
CHINESE = re.compile("[零一二两三四五六七八九十百千万亿半]+")
CHINESE_DIGITS = dict(zip("零一二两三四五六七八九", (0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9), strict=True))
CHINESE_SIZES = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8}
MOST_DIGITS = 300  # a longer row of digits is compared as it is written


@dataclass(frozen=True, slots=True)
class Quantity:
    """`values`: what it may mean. `weak`: "one", which may as well be an article."""

    text: str
    values: frozenset[Any]
    start: int
    end: int
    weak: bool = False

    def same(self, other: Quantity) -> bool:
        return not self.values.isdisjoint(other.values)


def find_quantities(text: str, language: str = "en", *, loose: bool = False) -> list[Quantity]:
    """In the order of the text. Words are read in languages that `numbers.toml` has."""
    quantities = [*in_digits(text, language, loose)]
    taken = [(quantity.start, quantity.end) for quantity in quantities]
    words = in_chinese(text) if language == "zh" else in_words(text, language)
    quantities += [
        one for one in words if not any(one.start < end and start < one.end for start, end in taken)
    ]
    return sorted(quantities, key=lambda quantity: quantity.start)


def in_digits(text: str, language: str, loose: bool) -> Iterator[Quantity]:
    for match in DIGITS.finditer(text):
        for written, start in readable_parts(match[0], loose):
            start += match.start()
            end = start + len(written)
            values = read_digits(written, loose)
            if percent := PERCENT.match(text, end):
                end = percent.end()
                values = {value / 100 for value in values if isinstance(value, Fraction)}
            elif language == "en" and (size := SIZE.match(text, end)) and size[1].lower() in sizes():
                end = size.end()
                values = {value * sizes()[size[1].lower()] for value in values if isinstance(value, Fraction)}
            yield Quantity(text[start:end], frozenset(values), start, end)


def readable_parts(written: str, loose: bool) -> Iterator[tuple[str, int]]:
    """ "1,2,3" is three numbers, "1,200" one."""
    bare = written.lstrip("-\u2212")
    readings = (bare, marks_swapped(bare)) if loose else (bare,)
    if not bare[:1].isdecimal() or any(ENGLISH.fullmatch(reading) for reading in readings):
        yield written, 0
        return
    for match in re.finditer(r"[-\u2212]?\d+(?:\.\d+)?" if not loose else r"[-\u2212]?\d+", written):
        yield match[0], match.start()


def read_digits(written: str, loose: bool) -> set[Any]:
    if not written.lstrip("-\u2212")[:1].isdecimal():
        return {Fraction(unicodedata.numeric(written)).limit_denominator(1000)}
    if len(written) > MOST_DIGITS:
        return {written}
    sign = -1 if written[0] in "-\u2212" else 1
    bare = written.lstrip("-\u2212")
    readings = {bare, marks_swapped(bare)} if loose else {bare}
    return {sign * Fraction(reading.replace(",", "")) for reading in readings if ENGLISH.fullmatch(reading)}


def marks_swapped(written: str) -> str:
    return written.translate({ord("."): ",", ord(","): "."})


# In words.


@cache
def number_words() -> Mapping[str, Any]:
    return tomllib.loads((FOLDER / "numbers.toml").read_text(encoding="utf-8"))


@cache
def sizes() -> Mapping[str, int]:
    english: Mapping[str, int] = number_words()["en"]["sizes"]
    return english


def in_words(text: str, language: str) -> Iterator[Quantity]:
    if language == "en":
        yield from in_english(text)
        return
    words = number_words()["other"].get(language, {})
    for match in WORD.finditer(text):
        if (value := words.get(match[0].lower())) is not None:
            yield Quantity(match[0], frozenset({Fraction(value)}), match.start(), match.end())


def in_english(text: str) -> Iterator[Quantity]:
    """ "three hundred and five" is one number, "three apples and five pears" are two."""
    english = number_words()["en"]
    units, alone = english["units"], english["alone"]
    run: list[re.Match[str]] = []

    def ended() -> Iterator[Quantity]:
        if run:
            start, end = run[0].start(), run[-1].end()
            words = [match[0].lower() for match in run]
            yield Quantity(text[start:end], frozenset({add_up(words)}), start, end, words == ["one"])
            run.clear()

    for match in WORD.finditer(text):
        word = match[0].lower()
        if word in units or word in sizes():
            if run and not (
                JOINED.fullmatch(text, run[-1].end(), match.start()) and follows(run[-1][0].lower(), word)
            ):
                yield from ended()
            run.append(match)
        elif word in alone:
            yield from ended()
            yield Quantity(match[0], frozenset(map(Fraction, alone[word])), match.start(), match.end())
    yield from ended()


def follows(before: str, word: str) -> bool:
    """Whether the two are parts of one number: twenty five, five hundred, hundred five; not five five."""
    units = number_words()["en"]["units"]
    if word in sizes():
        return True
    return before in sizes() or (units[before] >= 20 and 0 < units[word] < 10)


def add_up(words: Sequence[str]) -> Fraction:
    units = number_words()["en"]["units"]
    total = current = 0
    for word in words:
        if word in units:
            current += units[word]
        elif sizes()[word] in (12, 100):
            current = max(current, 1) * sizes()[word]
        else:
            total, current = total + max(current, 1) * sizes()[word], 0
    return Fraction(total + current)


def in_chinese(text: str) -> Iterator[Quantity]:
    for match in CHINESE.finditer(text):
        written = match[0]
        total = current = Fraction(0)
        for character in written:
            if character == "半":
                current += Fraction(1, 2)
            elif (size := CHINESE_SIZES.get(character)) is None:
                current += CHINESE_DIGITS[character]
            elif size >= 10**4:
                total, current = (total + max(current, Fraction(1))) * size, Fraction(0)
            else:
                total, current = total + max(current, Fraction(1)) * size, Fraction(0)
        value = total + current
        yield Quantity(written, frozenset({value}), match.start(), match.end(), written == "一")


# Of two texts.


def lost_quantities(before: Sequence[Quantity], after: Sequence[Quantity]) -> list[Quantity]:
    left = [*after]
    missing = []
    for quantity in before:
        place = next((number for number, one in enumerate(left) if quantity.same(one)), None)
        if place is not None:
            left.pop(place)
        elif not quantity.weak:
            missing.append(quantity)
    return missing


def new_quantities(before: Sequence[Quantity], after: Sequence[Quantity]) -> list[Quantity]:
    return [one for one in after if not one.weak and not any(one.same(quantity) for quantity in before)]
