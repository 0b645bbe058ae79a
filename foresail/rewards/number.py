r"""Numbers as people write them, read exactly: `1,234`, `-0.5`, `3/4`, `\frac34`, `50%`, `3\times10^{-8}`.

No floats and no `eval`. Lengths and exponents are bounded before any arithmetic; what lies beyond, and
what is ambiguous (`1,2` may be a list), is not a number here.
"""

from __future__ import annotations

import re
from fractions import Fraction

# Together these keep every numerator below the 4300 digits that Python agrees to convert to and from text.
MAX_LENGTH = 2000
MAX_EXPONENT = 500

_TIMES = r"(?:\\times|\\cdot|×|\*)"
_GROUPED = r"[1-9]\d{0,2}(?P<separator>[, ])\d{3}(?:(?P=separator)\d{3})*"
_POWER = r"10\s?\^\s?(?:\{\s?(?P<braced>[+-]?\d+)\s?\}|(?P<bare>[+-]?\d+))"
_DECIMAL = re.compile(
    rf"(?:(?P<whole>{_GROUPED}|\d*+)(?:\.(?P<places>\d*+))?)"
    rf"(?:[eE](?P<exponent>[+-]?\d+)|\s?{_TIMES}\s?{_POWER})?",
    re.ASCII,
)
_TEN_TO = re.compile(_POWER, re.ASCII)
_FRAC = re.compile(r"\\frac\s?(?:\{([^{}]*)\}|(\d))\s?(?:\{([^{}]*)\}|(\d))", re.ASCII)


def parse_number(text: str) -> Fraction | None:
    r"""parse_number("-1,234.5") -> -2469/2; parse_number(r"\frac12") -> 1/2; parse_number("x") -> None."""
    text = text.strip()
    if len(text) > MAX_LENGTH:
        return None
    percent = text.endswith("%")
    value = _read_signed(text.removesuffix("%").rstrip())
    return value / 100 if value is not None and percent else value


def _read_signed(text: str) -> Fraction | None:
    negative = text.startswith("-")
    if negative or text.startswith("+"):
        text = text[1:].lstrip()
    value = _read_quotient(text)
    return -value if value is not None and negative else value


def _read_quotient(text: str) -> Fraction | None:
    if frac := _FRAC.fullmatch(text):
        top = _read_signed((frac[1] or frac[2] or "").strip())
        bottom = _read_signed((frac[3] or frac[4] or "").strip())
    elif "/" in text:
        above, _, below = text.partition("/")
        if re.search(_TIMES, below):  # 1/2*10^3: of what is it a half?
            return None
        top, bottom = _read_decimal(above.rstrip()), _read_decimal(below.lstrip())
    else:
        return _read_decimal(text)
    return top / bottom if top is not None and bottom else None


def _read_decimal(text: str) -> Fraction | None:
    """_read_decimal("1 234.5") -> 2469/2; a sign is not part of it."""
    if power := _TEN_TO.fullmatch(text):
        return _shift(Fraction(1), power["braced"] or power["bare"])
    match = _DECIMAL.fullmatch(text)
    if match is None:
        return None
    whole = match["whole"].replace(match["separator"] or ",", "")
    places = match["places"] or ""
    if not whole + places:
        return None
    value = Fraction(int(whole + places), 10 ** len(places))
    return _shift(value, match["exponent"] or match["braced"] or match["bare"] or "0")


def _shift(value: Fraction, exponent: str) -> Fraction | None:
    power = int(exponent)
    return value * Fraction(10) ** power if abs(power) <= MAX_EXPONENT else None
