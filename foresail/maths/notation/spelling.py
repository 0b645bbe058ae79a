r"""Measures and recurring decimals in the short forms of everyday writing, spelled out for the lexer.

`12 h 30 min` -> `12 \text{ hours } 30 \text{ minutes }`; `5'10"` -> feet and inches; `0.1666 repeating` ->
`0.1\overline{6}`. A letter such as m or s is a unit only where the whole answer is such a measure.
"""

from __future__ import annotations

import re

MEASURE_CHARS = 80  # characters of a measure

_TIMES = {"d": "days", "h": "hours", "hr": "hours", "hrs": "hours", "m": "minutes", "min": "minutes",
          "mins": "minutes", "s": "seconds", "sec": "seconds", "secs": "seconds"}  # fmt: skip
_OTHERS = {"km": "km", "m": "m", "cm": "cm", "mm": "mm", "kg": "kg", "g": "g", "mg": "mg", "ft": "feet",
           "in": "inches", "lb": "lb", "lbs": "lb", "oz": "oz", "yd": "yards", "'": "feet",
           '"': "inches"}  # fmt: skip
_AMOUNT = r"\d{1,9}(?:\.\d{1,9})?"
_LOOKS_SHORT = re.compile(
    rf"\s*\\?{_AMOUNT}(?:\s|\\[,;: ]|~|\\text|\\mathrm|\{{|\^)*(?:[a-z]{{1,4}}(?![a-z])|['\"]|\\prime)"
)
_WRAPPING = re.compile(r"\\(?:text|mathrm|textrm|mbox|operatorname|min(?![a-z]))|\\[,;: ]|[~{}$^]")
_PRIMES = re.compile(r"\\prime\s*\\prime|''|\\prime")
_PART = re.compile(rf"({_AMOUNT})\s*([a-z]{{1,4}}|['\"])\.?(?:\s*(?:and|,)\s*(?=\d)|[\s-]*)")
_SPOKEN = re.compile(
    r"(?P<whole>\d{0,20})\.(?P<places>\d{1,60})(?:\.\.\.)?\s*(?P<text>\\text\s*\{\s*)?(?P<bracket>[(（]\s*)?"
    r"(?:(?:with\s+)?(?:the\s+)?(?:(?P<block>\d{1,20})\s+)?(?:repeating|recurring)|循环)(?(bracket)[)）])(?(text)\s*\})"
)
_BARRED = re.compile(r"(\\overline\s*\{\d+\})\s*(?:\(?(?:repeating|recurring)\b\)?)")


def spelled_out(text: str) -> str:
    """The text with short measures and spoken recurring decimals in full; most texts have none."""
    if "epeating" in text or "ecurring" in text or "循环" in text:
        text = _SPOKEN.sub(_with_bar, _BARRED.sub(r"\1", text))
    if len(text) <= MEASURE_CHARS and _LOOKS_SHORT.match(text):
        return _measure(text) or text
    return text


def _measure(text: str) -> str:
    r"""_measure("5'10\"") -> r"5 \text{ feet } 10 \text{ inches }"; empty for `5m` and what is no measure."""
    bare = _WRAPPING.sub(lambda mark: " min" if mark[0] == r"\min" else " ", text)
    bare = _PRIMES.sub(lambda primes: "'" if primes[0] == r"\prime" else '"', bare).strip()
    parts, place = [], 0
    while place < len(bare):
        part = _PART.match(bare, place)
        if part is None:
            return ""
        parts.append((part[1], part[2]))
        place = part.end()
    names = _TIMES if any(unit in _TIMES and unit != "m" for _, unit in parts) else _OTHERS
    if any(unit not in names for _, unit in parts):
        return ""
    if len(parts) == 1 and parts[0][1] not in ("min", "mins", "in", "'", '"'):
        return ""  # the lexer knows it, or takes it for a letter
    return " ".join(rf"{amount} \text{{ {names[unit]} }}" for amount, unit in parts)


def _with_bar(spoken: re.Match[str]) -> str:
    r"""`0.1666 repeating` as `0.1\overline{6}`; `0.16 repeating` may be two numbers and stays."""
    places, block = spoken["places"], spoken["block"] or _recurring_block(spoken["places"])
    if not block or not places.endswith(block):
        return spoken[0]
    fixed = places
    while fixed.endswith(block):
        fixed = fixed.removesuffix(block)
    return rf"{spoken['whole'] or 0}.{fixed}\overline{{{block}}}"


def _recurring_block(places: str) -> str:
    """The shortest block that stands at the end twice, or all places: "1666" -> "6"; "142857" -> itself."""
    for length in range(1, len(places) // 2 + 1):
        if places.endswith(2 * places[-length:]):
            return places[-length:]
    return "" if len(places) == 2 else places
