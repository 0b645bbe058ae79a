"""A text as lines or paragraphs, which of them may be cut, and the text without some.

Code, formulas and tables stay whole: a line of theirs means something only among the others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

Unit = Literal["line", "paragraph"]
FENCE = re.compile(r"\s*(```|~~~|\$\$)")
BLANK_LINES = re.compile(r"\n[^\S\n]*(?:\n[^\S\n]*)+")
WORD = re.compile(r"[^\W_]")


def units_of(text: str, unit: Unit) -> list[str]:
    return text.split("\n") if unit == "line" else BLANK_LINES.split(text)


def comparable(units: Sequence[str], min_chars: int) -> list[bool]:
    """Not what is short, without letters or digits, within ``` or $$, or a row of a table."""
    may_be_cut, fence = [], ""
    for text in units:
        inside = bool(fence)
        for line in text.split("\n"):
            match = FENCE.match(line)
            if match and not fence and line.count(match[1]) % 2:
                fence, inside = match[1], True
            elif match and match[1] == fence:
                fence = ""
        plain = text.strip()
        whole = inside or len(plain) < min_chars or plain.startswith("|") or not WORD.search(plain)
        may_be_cut.append(not whole)
    return may_be_cut


def without(units: Sequence[str], cut: Sequence[bool], unit: Unit) -> str:
    """No more than one empty line in a row where something was cut."""
    kept: list[str] = []
    gap = False
    for text, is_cut in zip(units, cut, strict=True):
        if is_cut:
            gap = True
        elif not (gap and not text.strip() and (not kept or not kept[-1].strip())):
            kept.append(text)
            gap = False
    return ("\n" if unit == "line" else "\n\n").join(kept)
