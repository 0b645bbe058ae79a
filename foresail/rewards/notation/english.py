"""English numerals: `twenty-four` is 24, `one hundred and five` 105, `two thirds` 2/3."""

from __future__ import annotations

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
_LARGE = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_PARTS = {
    word: value
    for value, word in enumerate("half third fourth fifth sixth seventh eighth ninth tenth".split(), start=2)
} | {"halve": 2, "quarter": 4, "hundredth": 100, "thousandth": 1000}
_ALL = _SMALL.keys() | _TENS.keys() | _LARGE.keys()


def english_numeral(text: str) -> Fraction | None:
    """english_numeral("three quarters") -> 3/4; None for anything that is not a numeral."""
    words = text.replace("-", " ").split()
    if not words or len(words) > 20 or (words[0] not in _ALL):
        return None
    part = _PARTS.get(words[-1].removesuffix("s"))
    if part is None:
        return _whole(words)
    above = _whole(words[:-1])
    return None if above is None else above / part


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
