"""Phone numbers: international ones by their country's lengths, national ones by the forms people write.

"+62 812-3456-7890", "(021) 555-1234", "(11) 91234-5678" are such numbers; so is 081234567890 behind a word such as
"WhatsApp". Without a word, digits in one row are none, nor are prices, dates and numbers of orders.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from foresail.curate.pii.finding import BLANK, Finding
from foresail.curate.pii.number import AFTER_DENSE, AFTER_SPACED, BEFORE_SPACED, Number, digits

# Digits behind the country's code, fewest and most; countries that are not named have REST.
LENGTHS = {
    "1": (10, 10), "7": (10, 10), "20": (8, 10), "27": (9, 9), "30": (10, 10), "31": (9, 9), "32": (8, 9),
    "33": (9, 9), "34": (9, 9), "36": (8, 9), "39": (8, 11), "40": (9, 9), "41": (9, 9), "43": (7, 12),
    "44": (9, 10), "45": (8, 8), "46": (7, 10), "47": (8, 8), "48": (9, 9), "49": (7, 11), "51": (8, 9),
    "52": (10, 11), "53": (8, 8), "54": (10, 11), "55": (10, 11), "56": (9, 9), "57": (8, 10), "58": (10, 10),
    "60": (8, 10), "61": (9, 9), "62": (8, 12), "63": (8, 10), "64": (8, 10), "65": (8, 8), "66": (8, 9),
    "81": (9, 10), "82": (8, 10), "84": (8, 10), "86": (10, 11), "90": (10, 10), "91": (10, 10), "92": (9, 10),
    "93": (9, 9), "94": (9, 9), "95": (7, 10), "98": (10, 10),
}  # fmt: skip
REST = (7, 11)
THREE = re.compile(r"2[1-689]\d|3[578]\d|42[0-3]|5[09]\d|6[7-9]\d|85[0-6]|88[0-8]|96[0-8]|97[0-79]|99[2-8]")
PLUS = re.compile(
    rf"(?<![\w)\]}}$\\^{{{BLANK}])(?<![\d){BLANK}][-. ])(?:\(\+\d{{1,3}}\)|\+\(\d{{1,3}}\)|\+\d{{1,3}})"
    r"[-. ]?(?:\(\d{1,4}\))?(?:[-. ]{0,2}\d){4,15}",
    re.ASCII,
)
GROUP = re.compile(r"\d+")

AREA_BR = r"(?:1[1-9]|2[12478]|3[1-578]|4[1-9]|5[1345]|[689][1-9]|7[1345789])"
EXTENSION = re.compile(r"(?: ?x\d{2,6})?", re.ASCII)
S, T = "[-. ]", "[-. ]?"
PARENTHESES = rf"{BEFORE_SPACED}\((?:%s)\) ?"
NATIONAL = re.compile(
    "|".join(
        f"{BEFORE_SPACED}(?:{pattern}){AFTER_SPACED}"
        for pattern in (
            # Indonesia: mobile, landline
            rf"08[1-9]\d{S}\d{{3,4}}{S}\d{{3,5}}|08[1-9]\d-\d{{6,8}}|08[1-9]\d?{S}\d{{4}}{S}\d{{4}}",
            rf"\(0[2-9]\d{{1,2}}\){T}\d{{3,4}}{T}\d{{3,4}}|0[2-9]\d{{1,2}}-\d{{6,8}}|0[2-9]\d{{1,2}}{S}\d{{3,4}}{S}\d{{3,4}}",
            # Thailand
            rf"0[689]\d{S}\d{{3}}{S}?\d{{4}}|0[2-7]{S}\d{{3}}{S}\d{{4}}|0[3-7]\d{S}\d{{3}}{S}?\d{{3}}|0-\d{{4}}-\d{{4}}",
            # Vietnam: mobile, landline
            rf"0[35789]\d{{1,2}}{S}\d{{3}}{S}\d{{3,4}}|0[35789]\d{S}\d{{4}}{S}\d{{3}}|0[35789]\d{S}\d{{7}}",
            rf"\(?02\d{{1,2}}\)?{S}\d{{3,4}}{S}?\d{{4}}",
            # Malaysia
            r"01\d[- ]\d{3,4}[ -]?\d{4}|0[3-9]-\d{3,4}[ -]?\d{4}|08\d-\d{3}[ -]?\d{3}",
            # Philippines
            rf"09\d{{2}}{S}\d{{3}}{S}?\d{{4}}|\(0\d{{1,3}}\){T}\d{{3,4}}{S}\d{{4}}|09\d{{2}}-\d{{7}}|02-\d{{4}}-\d{{4}}",
            # Brazil
            rf"\(0?[1-9]\d\){T}(?:9{T})?\d{{4}}{S}\d{{4}}|0?[1-9]\d[ -]9\d{{4}}-\d{{4}}",
            rf"{AREA_BR} (?!(?:19|20)\d\d-(?:19|20))[2-5]\d{{3}}-\d{{4}}",
            r"0[389]00[ -]\d{3}[ -]?\d{4}",
            # United States
            rf"(?:(?:\+|00)?1[-. ]?)?(?:\([2-9]\d{{2}}\){T}|[2-9]\d{{2}}[-.])[2-9]\d{{2}}[-.]\d{{4}}"
            + EXTENSION.pattern,
            # China
            r"1[3-9]\d[- ]\d{4}[- ]\d{4}",
            r"\([2-9]\d{2}\) ?[2-9]\d{2} \d{4}",
        )
    ),
    re.ASCII,
)
# behind a word that says so: any seven to thirteen digits in one piece
ANY = re.compile(rf"{BEFORE_SPACED}\(?\d(?:[-. ()]{{0,2}}\d){{6,12}}{AFTER_DENSE}", re.ASCII)
DATE = re.compile(
    r"(?:19|20)\d\d[-./ ]\d\d?[-./ ]\d\d?|\d\d?[-./ ]\d\d?[-./ ](?:19|20)\d\d|(?:19|20)\d\d ?- ?(?:19|20)\d\d"
)

FRACTION = re.compile(r"\d{1,12}\.\d{1,12}|\d{1,3}(?:\.\d{1,3}){3}", re.ASCII)


def find_phones(number: Number) -> Iterator[Finding]:
    for match in PLUS.finditer(number.text):
        if end := international_end(match):
            yield Finding("phone", match.start(), end)
    for match in NATIONAL.finditer(number.text):
        if not number.is_other(match.start()):
            yield Finding("phone", *match.span())
    for match in ANY.finditer(number.text):
        if number.is_phone(match.start()) and may_be_phone(match[0]) and not number.is_other(match.start()):
            yield Finding("phone", *match.span())


def may_be_phone(text: str) -> bool:
    """No date, no fraction (47.525494), no IP address, no code of 13 digits on goods."""
    return (
        DATE.match(text) is None
        and FRACTION.fullmatch(text) is None
        and text[-2:-1].isdigit()
        and (len(digits(text)) < 13 or text.lstrip("(").startswith("0"))
    )


def international_end(match: re.Match[str]) -> int:
    """Where the number ends, by the length that its country's numbers have; 0 if no length fits."""
    text = match[0]
    code = country_code(digits(text)[:3])
    if not code:
        return 0
    fewest, most = LENGTHS.get(code, REST)
    count, end = -len(code), 0
    for group in GROUP.finditer(text):
        size = len(group[0])
        if end and size < 3:
            break  # "+62 812 3456 7890 25 orang": the number has ended
        if group[0] == "0" and count >= 0 and text[group.start() - 1] == "(":
            continue  # +44 (0) 20 …
        count += size
        if count > most:
            break
        if count >= fewest:
            end = group.end()
    if "." in text[:end] and ("-" in text[:end] or " " in text[:end]):
        return 0  # +9166.01287-109
    if not end or match.string[match.start() + end : match.start() + end + 1] == "%":
        return 0
    closes = text[end : end + 1] == ")" and text[:end].count("(") > text[:end].count(")")
    extension = EXTENSION.match(match.string, match.start() + end + closes)
    return extension.end() if extension else match.start() + end


def country_code(text: str) -> str:
    """country_code("628") -> "62"; empty where no country has it."""
    for length in (1, 2):
        if text[:length] in LENGTHS:
            return text[:length]
    return text if THREE.match(text) else ""
