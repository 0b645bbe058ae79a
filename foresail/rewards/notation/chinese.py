"""Chinese numerals: `一百零五` is 105, `两万` 20,000."""

from __future__ import annotations

import re

_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_PLACES = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10**4, "亿": 10**8}
_COLLOQUIAL = re.compile("[百千万亿][一二三四五六七八九]$")  # 百二 is 120 to some and 102 to others
_ALL = _DIGITS.keys() | _PLACES.keys() | _MYRIADS.keys()


def chinese_numeral(text: str) -> int | None:
    """chinese_numeral("四十二") -> 42; None for anything that is not a numeral."""
    if not text or len(text) > 30 or not _ALL.issuperset(text):
        return None
    if _DIGITS.keys() >= set(text):  # 二〇二四: digit by digit
        return int("".join(str(_DIGITS[char]) for char in text))
    if text[0] in _MYRIADS or _COLLOQUIAL.search(text):
        return None
    total = section = digit = 0
    for char in text:
        if char in _DIGITS:
            digit = _DIGITS[char]
        elif char in _PLACES:
            section += (digit or 1) * _PLACES[char]
            digit = 0
        else:
            total = (total + section + digit) * _MYRIADS[char]
            section = digit = 0
    return total + section + digit
