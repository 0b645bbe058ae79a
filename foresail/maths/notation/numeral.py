r"""Numerals as people write them, read exactly: `1,234`, `1.234.567,89`, `0.1\overline{6}`, `3e-8`.

No floats and no `eval`. Lengths and exponents are bounded before any arithmetic; beyond the bounds there is
no value (`None`), and the caller compares texts instead.
"""

from __future__ import annotations

import re
from fractions import Fraction

MAX_DIGITS = 20_000
MAX_EXPONENT = 5_000
_MAX_SHOWN_DIGITS = 60  # digits before the dots of an endless decimal
_CHUNK = 4_000  # below the 4,300 digits that Python agrees to turn into an integer at once

# Grouped forms first: the alternatives are tried in order, and a match must not stop inside a digit run.
# Of bounded length: a list such as 11,11,11… could be the beginning of a grouped numeral at each of its items.
_GROUPS = 300
# Commas that group make up a whole run of digits: in 10,100,1000 each is a separator.
GROUPED = (
    rf"(?<!\d,)(?:[1-9]\d{{0,2}}(?:,\d{{3}}){{1,{_GROUPS}}}|[1-9]\d?(?:,\d{{2}}){{1,{_GROUPS}}},\d{{3}})"
    r"(?!,?\d)(?:\.\d+)?"  # 1,234.5; 12,34,567
    rf"|[1-9]\d{{0,2}}(?:\.\d{{3}}){{1,{_GROUPS}}},\d+(?!,)"  # 1.234,89
)
# 1,000 and 1,234,050 and 21, 000: no item of a list begins with a zero, so these commas group everywhere.
ZERO_LED = (
    rf"[1-9]\d{{0,2}}(?:,\d{{3}}){{0,{_GROUPS}}},(?:0\d\d| 000)"
    rf"(?:,\d{{3}}|, 000){{0,{_GROUPS}}}(?!\d)(?:\.\d+)?"
)
POINTED = rf"[1-9]\d{{0,2}}(?:\.\d{{3}}){{2,{_GROUPS}}}(?![\d,])"  # 1.234.567
# 1 234 567 and 1'234'567
SPACED = rf"[1-9]\d{{0,2}}(?:[ '_]\d{{3}}){{1,{_GROUPS}}}(?![\d'])(?:\.\d+|,\d{{2}}(?![\d,]))?"
_DOTTED = r"\\dot\s?(?:\{\d\}|\d)"
RECURRING = rf"\d*\.\d*(?:\\(?:overline|bar)\s?\{{\d+\}}|{_DOTTED}(?:\d*{_DOTTED})?|\(\d+\)(?![\d(^]))"
ENDLESS = r"\d*\.\d+(?:\.\.\.|\\l?dots\b|\\cdots\b)"
PLAIN = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+(?![\d.]))?"

_DIGITS = re.compile(r"\d+")
_FRACTION = re.compile(r"(\d*+)\.?(\d*+)(?:[eE]([+-]?\d+))?\Z", re.ASCII)


def value_of(numeral: str) -> Fraction | None:
    r"""value_of("1,234.5") -> 2469/2; value_of(r"0.\overline{3}") -> 1/3; value_of("1.234.567") -> 1234567."""
    if len(numeral) > MAX_DIGITS:
        return None
    if "\\" in numeral or "(" in numeral or numeral.endswith("..."):
        return _recurring(numeral)
    if "," in numeral or " " in numeral or "'" in numeral or "_" in numeral or numeral.count(".") > 1:
        numeral = _ungroup(numeral)
    match = _FRACTION.match(numeral)
    if match is None:
        return None
    whole, places, exponent = match.groups()
    value = Fraction(integer(whole + places))
    if places:
        value /= 10 ** len(places)
    if not exponent:
        return value
    power = int(exponent) if len(exponent) < 7 else MAX_EXPONENT + 1
    return value * Fraction(10) ** power if abs(power) <= MAX_EXPONENT else None


def integer(digits: str) -> int:
    """int(digits) of any length: Python refuses to read more than 4,300 digits in one go."""
    if len(digits) <= _CHUNK:
        return int(digits or "0")
    middle = len(digits) // 2
    return integer(digits[:middle]) * 10 ** (len(digits) - middle) + integer(digits[middle:])


def decimal_comma(numeral: str) -> Fraction | None:
    """The other reading of a single comma: decimal_comma("1000,99") -> 100099/100; None for "1,234"."""
    whole, comma, places = numeral.partition(",")
    if not (comma and whole.isdigit() and places.isdigit()) or len(numeral) > MAX_DIGITS:
        return None
    if len(places) == 3 and len(whole) <= 3 and whole != "0":
        return None
    return Fraction(integer(whole + places), 10 ** len(places))


def significant_digits(numeral: str) -> int:
    """significant_digits("0.0830") -> 2; how much a decimal claims to know. A value cut short ends in no zeros."""
    digits = "".join(_DIGITS.findall(re.split("[eE]", numeral, maxsplit=1)[0]))
    return len(digits.strip("0"))


def in_base(digits: str, base: int) -> int | None:
    """in_base("1A", 16) -> 26; None where a digit does not belong to the base."""
    if not 2 <= base <= 36 or len(digits) > _CHUNK:
        return None
    try:
        return int(digits, base)
    except ValueError:
        return None


def _ungroup(numeral: str) -> str:
    """_ungroup("1.234.567,89") -> "1234567.89"; _ungroup("1 234.5") -> "1234.5"."""
    if "," in numeral and numeral[-3] == "," and re.search("[ '_]", numeral):
        return re.sub("[ '_]", "", numeral).replace(",", ".")
    if numeral.count(".") > 1 or ("." in numeral and numeral.rfind(",") > numeral.rfind(".")):
        numeral = numeral.replace(".", "").replace(",", ".")
    return re.sub(r"[, '_]", "", numeral)


def _recurring(numeral: str) -> Fraction | None:
    r"""_recurring(r"0.1\overline{6}") -> 1/6; _recurring("0.1666...") -> 1/6."""
    if numeral.endswith("...") or "dots" in numeral:
        return _endless(_DIGITS.findall(numeral))
    whole, _, places = numeral.partition(".")
    fixed, block = re.split(r"[\\(]", places, maxsplit=1)  # 1\dot{2}3\dot{4}: 1 stands once, 234 recurs
    return _repeating(whole, fixed, "".join(_DIGITS.findall(block)))


def _repeating(whole: str, fixed: str, block: str) -> Fraction:
    """_repeating("0", "1", "6") -> 0.1666… = 1/6."""
    scale = 10 ** len(fixed)
    return Fraction(integer(whole + fixed), scale) + Fraction(integer(block), scale * (10 ** len(block) - 1))


def _endless(digits: list[str]) -> Fraction | None:
    """Digits that visibly recur before the dots: ["0", "1666"] -> 1/6; None where no block is seen twice."""
    whole, places = (digits[0], digits[-1]) if len(digits) > 1 else ("0", digits[0])
    if len(places) > _MAX_SHOWN_DIGITS:
        return None
    for length in range(1, len(places) // 2 + 1):
        block = places[-length:]
        times = 1
        while places.endswith(block * (times + 1)):
            times += 1
        fixed = places[: len(places) - length * times]
        if times >= 3 or (times == 2 and (length > 1 or not fixed)):
            return _repeating(whole, fixed, block)
    return None
