"""National ids by check digits and structure: Brazil, Thailand, Malaysia, Indonesia, China, the United States.

"529.982.247-25" is a Brazilian CPF. Where a check is weak, a word such as "CPF" must stand before the number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date

from foresail.curate.pii.finding import Finding
from foresail.curate.pii.number import AFTER_DENSE, BEFORE_DENSE, Number, digits

# Structure by numbers: Indonesian provinces; Chinese provinces; Malaysian places of birth that are not in use.
PROVINCES_ID = frozenset(
    "11 12 13 14 15 16 17 18 19 21 31 32 33 34 35 36 51 52 53 61 62 63 64 65 71 72 73 74 75 76 81 82 91 92 93 94 "
    "95 96".split()
)
PROVINCES_CN = frozenset(
    "11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 71 81 82 "
    "83".split()
)
NO_PLACES_MY = frozenset("00 17 18 19 20 69 70 73 80 81 94 95 96 97".split())
YEAR_MADE = 2000  # two digits of a year are taken for this century or the last


def weighted(text: str, weights: range) -> int:
    return sum(int(digit) * weight for digit, weight in zip(text, weights, strict=False))


def is_cpf(text: str) -> bool:
    """Both check digits; not the same digit all over."""
    return len(set(text)) > 1 and all(
        (weighted(text, range(n + 1, 1, -1)) * 10 % 11) % 10 == int(text[n]) for n in (9, 10)
    )


def is_cnpj(text: str) -> bool:
    def check(count: int) -> int:
        weights = [(place % 8) + 2 for place in reversed(range(count))]
        left = sum(int(digit) * weight for digit, weight in zip(text, weights, strict=False)) % 11
        return 0 if left < 2 else 11 - left

    return len(set(text)) > 1 and check(12) == int(text[12]) and check(13) == int(text[13])


def is_thai(text: str) -> bool:
    """The first digit says what kind of person, the next two the province."""
    return (
        "1" <= text[0] <= "8"
        and "10" <= text[1:3] <= "96"
        and (11 - weighted(text, range(13, 1, -1)) % 11) % 10 == int(text[12])
    )


def is_malaysian(text: str) -> bool:
    """Date of birth, place, four digits."""
    return is_day(text[:2], text[2:4], text[4:6]) and text[6:8] not in NO_PLACES_MY


def is_indonesian(text: str) -> bool:
    """Province, regency, district, date of birth (the day of a woman plus 40), four digits that are not all 0."""
    day = int(text[6:8])
    return (
        text[:2] in PROVINCES_ID
        and "01" <= text[2:4] <= "79"
        and "01" <= text[4:6] <= "79"
        and is_day(text[10:12], text[8:10], f"{day - 40 if day > 40 else day:02}")
        and text[12:] != "0000"
    )


def is_chinese(text: str) -> bool:
    """Region, date of birth, three digits, a check digit modulo 11 where X is ten."""
    total = sum(int(digit) * pow(2, 17 - place, 11) for place, digit in enumerate(text[:17]))
    return (
        text[:2] in PROVINCES_CN
        and "1880" <= text[6:10] <= "2100"
        and is_date(int(text[6:10]), text[10:12], text[12:14])
        and "10X98765432"[total % 11] == text[17].upper()
    )


def is_american(text: str) -> bool:
    return text[:3] not in ("000", "666") and text[0] != "9" and text[3:5] != "00" and text[5:] != "0000"


def is_day(year: str, month: str, day: str) -> bool:
    return is_date(YEAR_MADE + int(year), month, day) or is_date(YEAR_MADE - 100 + int(year), month, day)


def is_date(year: int, month: str, day: str) -> bool:
    try:
        return bool(date(year, int(month), int(day)))
    except ValueError:
        return False


Check = Callable[[str], bool]


def form(pattern: str) -> re.Pattern[str]:
    return re.compile(f"{BEFORE_DENSE}{pattern}{AFTER_DENSE}", re.ASCII)


def bare(count: int) -> re.Pattern[str]:
    return re.compile(rf"{BEFORE_DENSE}\d{{{count}}}{AFTER_DENSE}", re.ASCII)


# A form, its check, and whether a word must say that the number is an id.
FORMS: tuple[tuple[re.Pattern[str], Check, bool], ...] = (
    (form(r"\d{3}\.\d{3}\.\d{3}-\d{2}"), is_cpf, False),
    (form(r"\d{2}\.\d{3}\.\d{3}/\d{4}-\d{2}"), is_cnpj, False),
    (form(r"\d([- ])\d{4}\1\d{5}\1\d{2}\1\d"), is_thai, False),
    (form(r"\d{6}-\d{2}-\d{4}"), is_malaysian, False),
    (form(r"\d{3}-\d{2}-\d{4}"), is_american, False),
    (form(r"\d{6}([ .-])\d{6}\1\d{4}|\d{4}([ .])\d{4}\2\d{4}\2\d{4}"), is_indonesian, True),
    (bare(16), is_indonesian, False),
    (re.compile(rf"{BEFORE_DENSE}\d{{17}}[\dXx]{AFTER_DENSE}", re.ASCII), is_chinese, False),
    (bare(13), is_thai, True),
    (bare(14), is_cnpj, True),
    (bare(11), is_cpf, True),
    (re.compile(rf"{BEFORE_DENSE}\d{{9}}-\d{{2}}{AFTER_DENSE}", re.ASCII), is_cpf, True),
    (bare(12), is_malaysian, True),
    (bare(9), is_american, True),
)  # fmt: skip


def find_ids(number: Number) -> Iterator[Finding]:
    for pattern, check, needs_word in FORMS:
        for match in pattern.finditer(number.text):
            if needs_word and not number.is_national_id(match.start()):
                continue
            if check(plain(match[0])) and not number.is_other(match.start()):
                yield Finding("national_id", *match.span())


def plain(text: str) -> str:
    """plain("1-2345-67890-12-X") -> "123456789012X" """
    return digits(text) + text[-1] * (text[-1] in "Xx")
