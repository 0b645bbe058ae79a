"""All personal data of a text: rules in their order, each on what those before it have left."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from foresail.curate.pii.banking import find_cards, find_ibans
from foresail.curate.pii.finding import BLANK, Finding, blanked
from foresail.curate.pii.identity import find_ids
from foresail.curate.pii.mail import find_mail
from foresail.curate.pii.network import find_addresses
from foresail.curate.pii.number import Number, numbers
from foresail.curate.pii.phones import find_phones
from foresail.curate.pii.secrets import find_secrets

Kind = Literal["email", "ip", "phone", "card", "iban", "national_id", "secret"]
KINDS: tuple[Kind, ...] = ("email", "ip", "phone", "card", "iban", "national_id", "secret")
PLACEHOLDER = re.compile("<(?:" + "|".join(KINDS) + ")>")

IN_TEXT: tuple[tuple[Kind, Callable[[str], Iterable[Finding]]], ...] = (
    ("secret", find_secrets),
    ("email", find_mail),
    ("ip", find_addresses),
    ("iban", find_ibans),
)
IN_NUMBERS: tuple[tuple[Kind, Callable[[Number], Iterable[Finding]]], ...] = (
    ("national_id", find_ids),
    ("card", find_cards),
    ("phone", find_phones),
)


def find(text: str, kinds: Iterable[str] = KINDS) -> list[Finding]:
    """find("Mail ann@b.org") -> [Finding("email", 5, 14)], in the order of the text; none overlaps another."""
    view = PLACEHOLDER.sub(lambda match: BLANK * len(match[0]), text) if "<" in text else text
    findings: list[Finding] = []
    for kind, rule in IN_TEXT:
        if kind in kinds and (new := apart(rule(view))):
            findings += new
            view = blanked(view, new)
    rules = [(kind, rule) for kind, rule in IN_NUMBERS if kind in kinds]
    if rules:
        for number in numbers(view):
            findings += in_number(number, rules)
    return sorted(findings, key=lambda finding: finding.start)


def in_number(
    number: Number, rules: Iterable[tuple[Kind, Callable[[Number], Iterable[Finding]]]]
) -> Iterator[Finding]:
    text = number.text
    for _, rule in rules:
        if new := apart(rule(Number(number.view, number.start, text))):
            text = blanked(text, new)
            for kind, start, end in new:
                yield Finding(kind, number.start + start, number.start + end)


def apart(findings: Iterable[Finding]) -> list[Finding]:
    """Those that do not overlap: of two the first rule's, or the one before."""
    taken: list[Finding] = []
    ends: set[int] = set()
    for finding in findings:
        places = range(finding.start, finding.end)
        if ends.isdisjoint(places):
            taken.append(finding)
            ends.update(places)
    return taken
