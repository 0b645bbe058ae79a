"""Markers in a text: where they stand, and how text from elsewhere is kept from holding any.

A marker is a string with a meaning: `<tool_call>`, `</think>`. What tools return comes from web pages, files and
programs. Every marker in it is broken by a space after its first character, so that it cannot pass for a call, or
end a result: neutralise("</result>", …) -> "< /result>". Special tokens are left to the tokenizer (`encode_text`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

THINK, THINK_END = "<think>", "</think>"
SURROGATE = re.compile("[\ud800-\udfff]")  # halves of characters, which have no UTF-8


class Marker(NamedTuple):
    """A marker in a text, and where it stands."""

    text: str
    start: int
    end: int


def find_markers(text: str, markers: Iterable[str]) -> list[Marker]:
    """All of them from left to right, in time that grows with the text's length only."""
    pattern = any_of(markers)
    return [Marker(match[0], match.start(), match.end()) for match in pattern.finditer(text)]


def any_of(markers: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(set(markers), key=lambda marker: (-len(marker), marker))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def neutralise(text: str, markers: Sequence[str] = ()) -> str:
    """The text without any of the markers, nor characters that cannot be encoded."""
    text = SURROGATE.sub("\ufffd", text)
    pattern = any_of(markers)
    while pattern.search(text):  # again: what is left of one may be another
        text = pattern.sub(broken, text)
    return text


def broken(match: re.Match[str]) -> str:
    """With a space behind its first character."""
    return f"{match[0][0]} {match[0][1:]}"
