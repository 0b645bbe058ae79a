"""Numbers in words: `twenty-four` is 24, `two thirds` 2/3, `一百零五` 105; of `7 elevenths` the scale is a word."""

from __future__ import annotations

import re
from fractions import Fraction

_SMALL = {
    word: value
    for value, word in enumerate(
        (
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
            "sixteen seventeen eighteen nineteen"
        ).split()
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2)
}
_LARGE = {"thousand": 10**3} | {
    f"{prefix}illion": 10 ** (3 * place)
    for place, prefix in enumerate("m b tr quadr quint sext sept oct non dec".split(), start=2)
}
_COUNTED = {"hundred": 100, "dozen": 12, "score": 20, "gross": 144, "lakh": 10**5, "crore": 10**7,
            "myriad": 10**4}  # fmt: skip
_IRREGULAR = {"one": "", "two": "", "three": "third", "five": "fifth", "eight": "eighth", "nine": "ninth",
              "twelve": "twelfth"}  # fmt: skip
_ENGLISH = _SMALL.keys() | _TENS.keys() | _LARGE.keys()


def _parts() -> dict[str, int]:
    """What a thing is divided into, by the word for one part: third -> 3, twenty-fifth is left out."""
    parts = {"half": 2, "halve": 2, "quarter": 4}
    for word, value in (_SMALL | _TENS | _LARGE | {"hundred": 100}).items():
        if value > 2:
            parts[
                _IRREGULAR.get(word) or (word.removesuffix("y") + "ieth" if word in _TENS else f"{word}th")
            ] = value
    return parts


PARTS = _parts()
# Words after a figure that multiply it: `7 million`, `3 quarters`, `2 dozen`; an ordinal is no fraction.
SCALES: dict[str, Fraction] = (
    {word: Fraction(value) for word, value in (_LARGE | _COUNTED).items()}
    | {f"{word}s": Fraction(value) for word, value in (_LARGE | _COUNTED).items()}
    | {f"{word}s": Fraction(1, value) for word, value in PARTS.items()}
    | {"half": Fraction(1, 2), "halves": Fraction(1, 2)}
)
NUMBER_WORDS = frozenset(
    _ENGLISH
    | SCALES.keys()
    | PARTS.keys()
    | {f"{word}s" for word in _SMALL | _TENS}
    | {"first", "second", "googol", "sixes", "twenties"}
)

_CHINESE_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_PLACES = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10**4, "亿": 10**8}
_COLLOQUIAL = re.compile("[百千万亿][一二三四五六七八九]$")  # 百二 is 120 to some and 102 to others
_CHINESE = _CHINESE_DIGITS.keys() | _PLACES.keys() | _MYRIADS.keys()


def english_numeral(text: str) -> Fraction | None:
    """english_numeral("three quarters") -> 3/4; None for anything that is no numeral, such as "twenty-fifth"."""
    words = text.replace("-", " ").split()
    if not words or len(words) > 20 or (words[0] not in _ENGLISH):
        return None
    above = _whole(words[:-1]) if len(words) > 1 else None
    part = PARTS.get(words[-1].removesuffix("s"))
    if part is None or above is None:
        return _whole(words)
    return above / part if (above == 1) != words[-1].endswith("s") else None


def _whole(words: list[str]) -> Fraction | None:
    total = section = 0
    for before, word in zip(["", *words], words, strict=False):
        if word == "and" and before in ("hundred", *_LARGE):
            continue
        if word == "hundred" and 0 < section < 10:
            section *= 100
        elif word in _LARGE and section:
            total, section = total + section * _LARGE[word], 0
        elif word in _TENS and section % 100 == 0:
            section += _TENS[word]
        elif word in _SMALL and (section % 100 == 0 or (section % 10 == 0 and 0 < _SMALL[word] < 10)):
            section += _SMALL[word]
        else:
            return None
    return Fraction(total + section)


def chinese_numeral(text: str) -> int | None:
    """chinese_numeral("四十二") -> 42; None for anything that is not a numeral."""
    if not text or len(text) > 30 or not _CHINESE.issuperset(text):
        return None
    if _CHINESE_DIGITS.keys() >= set(text):  # 二〇二四: digit by digit
        return int("".join(str(_CHINESE_DIGITS[char]) for char in text))
    if text[0] in _MYRIADS or _COLLOQUIAL.search(text):
        return None
    total = section = digit = 0
    for char in text:
        if char in _CHINESE_DIGITS:
            digit = _CHINESE_DIGITS[char]
        elif char in _PLACES:
            section += (digit or 1) * _PLACES[char]
            digit = 0
        else:
            total = (total + section + digit) * _MYRIADS[char]
            section = digit = 0
    return total + section + digit
