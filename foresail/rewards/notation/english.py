"""English numerals: `twenty-four` is 24, `one hundred and five` 105, `two thirds` 2/3, and `7 elevenths` has a word
for its scale."""

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
_LARGE = {"thousand": 10**3} | {
    f"{prefix}illion": 10 ** (3 * place)
    for place, prefix in enumerate("m b tr quadr quint sext sept oct non dec".split(), start=2)
}
_COUNTED = {
    "hundred": 100,
    "dozen": 12,
    "score": 20,
    "gross": 144,
    "lakh": 10**5,
    "crore": 10**7,
    "myriad": 10**4,
}
_IRREGULAR = {
    "one": "",
    "two": "",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
_ALL = _SMALL.keys() | _TENS.keys() | _LARGE.keys()


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
# Words behind a figure that multiply it: `7 million`, `3 quarters`, `2 dozen`; an ordinal is no fraction.
SCALES: dict[str, Fraction] = (
    {word: Fraction(value) for word, value in (_LARGE | _COUNTED).items()}
    | {f"{word}s": Fraction(value) for word, value in (_LARGE | _COUNTED).items()}
    | {f"{word}s": Fraction(1, value) for word, value in PARTS.items()}
    | {"half": Fraction(1, 2), "halves": Fraction(1, 2)}
)
NUMBER_WORDS = frozenset(
    _ALL
    | SCALES.keys()
    | PARTS.keys()
    | {f"{word}s" for word in _SMALL | _TENS}
    | {"first", "second", "googol", "sixes", "twenties"}
)


def english_numeral(text: str) -> Fraction | None:
    """english_numeral("three quarters") -> 3/4; None for anything that is no numeral, such as "twenty-fifth"."""
    words = text.replace("-", " ").split()
    if not words or len(words) > 20 or (words[0] not in _ALL):
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
