"""Runs of digits and signs between them, in one spelling: dashes are "-", spaces " ", digits 0 to 9."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from foresail.curate.pii.context import NATIONAL_ID, NEAR, OTHER_NUMBER, PHONE, words_before
from foresail.curate.pii.finding import BLANK

DASHES, SPACES = "-\u2010\u2011\u2012\u2013\u2212\uff0d", " \u00a0\u2009\u202f\u3000"
FEWEST = 7  # digits
RUN = re.compile(rf"\d(?:[{DASHES}{SPACES}.()/]{{0,3}}\d){{{FEWEST - 1},}}")
SAME = {ord(sign): "-" for sign in DASHES} | {ord(sign): " " for sign in SPACES}


@dataclass(frozen=True)
class Number:
    """`text` is the run with four characters before and seven behind it, so that rules see what it touches."""

    view: str
    start: int
    text: str

    def is_phone(self, at: int) -> bool:
        return PHONE.search(self.before(at)) is not None

    def is_other(self, at: int) -> bool:
        return OTHER_NUMBER.search(words_before(self.view, self.start + at, NEAR)) is not None

    def is_national_id(self, at: int) -> bool:
        return NATIONAL_ID.search(self.before(at)) is not None

    def before(self, at: int) -> str:
        """The words before a place of `text`."""
        return words_before(self.view, self.start + at)


def numbers(view: str) -> Iterator[Number]:
    for match in RUN.finditer(view):
        start, end = max(0, match.start() - 4), min(len(view), match.end() + 7)
        yield Number(view, start, one_spelling(view[start:end]))


def one_spelling(text: str) -> str:
    """As long as `text`: "๐๘๑–２" -> "081-2"."""
    if text.isascii():
        return text
    return "".join(map(one_sign, text.translate(SAME)))


def one_sign(sign: str) -> str:
    value = unicodedata.decimal(sign, None) if sign > "\x7f" else None
    return sign if value is None else str(value)


def digits(text: str) -> str:
    """digits("(021) 555-12") -> "02155512" """
    return "".join(sign for sign in text if "0" <= sign <= "9")


# What stands before and behind a number that is whole. A number with spaces inside is not part of a row of numbers.
BEFORE_DENSE = rf"(?<![\w{BLANK}$\\^{{/])(?<![\d{BLANK}][-.,/:])"
BEFORE_SPACED = BEFORE_DENSE + rf"(?<![\d{BLANK}][ ])"
AFTER_DENSE = rf"(?![\w{BLANK}%=])(?![-./:][\d{BLANK}]|[-/]\w)(?!,\d)"
AFTER_SPACED = AFTER_DENSE + rf"(?! [\d{BLANK}])"
