"""Finds markers such as `<tool_call>` or `</think>` in a text, and breaks those in text that tools return.

Tools return text of web pages, files and programs. A space after a marker's first character keeps it from passing
for a call, or ending a result: neutralise("</result>", …) -> "< /result>". Special tokens are the tokenizer's task
(`encode_text`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

THINK, THINK_END = "<think>", "</think>"
SURROGATE = re.compile("[\ud800-\udfff]")  # halves of characters: UTF-8 cannot encode them


class Marker(NamedTuple):
    """A marker and its position in a text."""

    text: str
    start: int
    end: int


def find_markers(text: str, markers: Iterable[str]) -> list[Marker]:
    """All markers from left to right, in time linear in the text."""
    pattern = any_of(markers)
    return [Marker(match[0], match.start(), match.end()) for match in pattern.finditer(text)]


def any_of(markers: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(set(markers), key=lambda marker: (-len(marker), marker))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def neutralise(text: str, markers: Sequence[str] = ()) -> str:
    """The text without any of the markers, nor characters that cannot be encoded."""
    text = SURROGATE.sub("\ufffd", text)
    pattern = any_of(markers)
    while pattern.search(text):  # again: breaking one may leave another
        text = pattern.sub(broken, text)
    return text


def broken(match: re.Match[str]) -> str:
    """With a space behind its first character."""
    return f"{match[0][0]} {match[0][1:]}"
