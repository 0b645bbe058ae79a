"""What a rule shows of a text: one line, short enough for a report."""

from __future__ import annotations

import re

from foresail.curate.document import one_line

SHOWN = 160  # characters
AROUND = 30  # characters on both sides of what a pattern matches


def shorten(text: str) -> str:
    return one_line(text, SHOWN)


def matched(pattern: re.Pattern[str], text: str) -> str:
    """The words that a pattern matches, with those around them; empty if it matches none."""
    match = pattern.search(text)
    return shorten(text[max(0, match.start() - AROUND) : match.end() + AROUND]) if match else ""
