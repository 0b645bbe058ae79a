"""Payment cards (issuer, length, Luhn's check) and IBANs (country, length, remainder 97).

"4111 1111 1111 1111" and "GB82 WEST 1234 5698 7654 32" are such numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from foresail.curate.pii.finding import BLANK, Finding
from foresail.curate.pii.number import AFTER_DENSE, AFTER_SPACED, BEFORE_DENSE, BEFORE_SPACED, Number, digits

CARD = re.compile(
    rf"{BEFORE_SPACED}\d{{4}}([ -])\d{{4}}\1\d{{4}}\1\d{{4}}(?:\1\d{{3}})?{AFTER_SPACED}"
    rf"|{BEFORE_SPACED}\d{{4}}([ -])\d{{6}}\2\d{{4,5}}{AFTER_SPACED}"
    rf"|{BEFORE_DENSE}\d{{13,19}}{AFTER_DENSE}",
    re.ASCII,
)
# Issuers: what a number begins with, and how long it is.
ISSUERS = (
    (re.compile(r"4"), (13, 16, 19)),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720"), (16,)),
    (re.compile(r"3[47]"), (15,)),
    (re.compile(r"6011|64[4-9]|65"), (16, 19)),
    (re.compile(r"35(?:2[89]|[3-8])"), (16, 19)),
    (re.compile(r"30[0-5]|36|38|39"), (14,)),
    (re.compile(r"62|81[0-7]"), (16, 17, 18, 19)),
    (re.compile(r"5018|5020|5038|5893|6304|6759|676[1-3]"), (13, 14, 15, 16, 17, 18, 19)),
)
IBAN = re.compile(rf"[A-Z](?<![\w{BLANK}].)[A-Z]\d\d(?= ?[A-Z0-9]{{4}})", re.ASCII)
IBAN_LENGTHS = {
    name: int(length)
    for name, length in (
        entry.split(":")
        for entry in """
        AD:24 AE:23 AL:28 AT:20 AZ:28 BA:20 BE:16 BG:22 BH:22 BI:27 BR:29 BY:28 CH:21 CR:22 CY:28 CZ:24 DE:22 DJ:27
        DK:18 DO:28 EE:20 EG:29 ES:24 FI:18 FO:18 FR:27 GB:22 GE:22 GI:23 GL:18 GR:27 GT:28 HR:21 HU:28 IE:22 IL:23
        IQ:23 IS:26 IT:27 JO:30 KW:30 KZ:20 LB:28 LC:32 LI:21 LT:20 LU:20 LV:21 LY:25 MC:27 MD:24 ME:22 MK:19 MR:27
        MT:31 MU:30 NI:28 NL:18 NO:15 OM:23 PK:24 PL:28 PS:29 PT:25 QA:29 RO:24 RS:22 RU:33 SA:24 SC:31 SD:18 SE:24
        SI:19 SK:24 SM:27 SO:23 ST:25 SV:28 TL:23 TN:24 TR:26 UA:29 VA:22 VG:24 XK:20
        """.split()
    )
}


def find_cards(number: Number) -> Iterator[Finding]:
    for match in CARD.finditer(number.text):
        if is_card(digits(match[0])) and not number.is_other(match.start()):
            yield Finding("card", *match.span())


def is_card(text: str) -> bool:
    """is_card("4111111111111111") -> True"""
    return (
        any(issuer.match(text) and len(text) in lengths for issuer, lengths in ISSUERS)
        and len(set(text)) > 1
        and luhn(text)
    )


def luhn(text: str) -> bool:
    """Every second digit from the right is doubled; the sum of all digits ends in 0."""
    doubled = (int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(text)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def find_ibans(view: str) -> Iterator[Finding]:
    end = 0
    for match in IBAN.finditer(view):
        if match.start() >= end and (stop := iban_end(view, match.start())):
            yield Finding("iban", match.start(), stop)
            end = stop


def iban_end(view: str, start: int) -> int:
    """Where the IBAN ends, with or without single spaces inside; 0 if it is none."""
    length = IBAN_LENGTHS.get(view[start : start + 2], 0)
    compact, place = "", start
    while len(compact) < length and place < len(view):
        sign = view[place]
        if sign == " " and len(compact) % 4 == 0 and view[place - 1] != " ":
            pass
        elif not sign.isascii() or not (sign.isdigit() or sign.isupper()):
            return 0
        else:
            compact += sign
        place += 1
    if not length or len(compact) < length or view[place : place + 1] == BLANK:
        return 0
    if view[place : place + 1].isascii() and view[place : place + 1].isalnum():
        return 0
    return place if int("".join(str(int(sign, 36)) for sign in compact[4:] + compact[:4])) % 97 == 1 else 0
