"""A place of a text that names a person, and what stands beside such a place.

Rules look one after the other. What one of them has found is BLANK for those behind it, and so are the
placeholders of an earlier run. A rule treats BLANK as it treats a digit beside it: so a masked text has nothing new
to mask.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

BLANK = "\x1a"
AFTER = rf"(?![\w{BLANK}])"  # with re.ASCII: Thai and Chinese have no space behind a number


class Finding(NamedTuple):
    """Finding("email", 3, 9): text[3:9] is an address."""

    kind: str
    start: int
    end: int


def blanked(text: str, findings: Iterable[Finding]) -> str:
    """As long as `text`."""
    parts, place = [], 0
    for _, start, end in sorted(findings, key=lambda finding: finding.start):
        parts += [text[place:start], BLANK * (end - start)]
        place = end
    return "".join([*parts, text[place:]])


def found(kind: str, pattern: re.Pattern[str], view: str, group: int = 0) -> Iterable[Finding]:
    return (Finding(kind, *match.span(group)) for match in pattern.finditer(view))
