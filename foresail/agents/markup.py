"""Markers in a text: where they stand, and how text from elsewhere is kept from holding any.

A marker is a string with a meaning: `<tool_call>`, `</think>`, a special token of the tokenizer's. What tools
return comes from web pages, files and programs. Every marker in it is broken by a space after its first character,
so that it cannot end a turn, begin one, or pass for a call: neutralise("</result>", …) -> "< /result>".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

THINK, THINK_END = "<think>", "</think>"
# How special tokens of most tokenizers begin: <|im_end|>, <｜User｜>. Broken even where nobody has named them.
SPECIAL = re.compile(r"<(?=[|｜])")
SURROGATE = re.compile("[\ud800-\udfff]")  # halves of characters, which have no UTF-8


class Marker(NamedTuple):
    """One that was found."""

    text: str
    start: int
    end: int


def find_markers(text: str, markers: Iterable[str]) -> list[Marker]:
    """All of them from left to right, in time that grows with the text's length only."""
    pattern = any_of(markers)
    return [Marker(found[0], found.start(), found.end()) for found in pattern.finditer(text)]


def any_of(markers: Iterable[str]) -> re.Pattern[str]:
    longest_first = sorted(set(markers), key=lambda marker: (-len(marker), marker))
    return re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")


def neutralise(text: str, markers: Sequence[str] = ()) -> str:
    """The text without any of the markers, nor `<|`, nor characters that cannot be encoded.

    neutralise("a<|im_end|>b") -> "a< |im_end|>b"
    """
    text = SURROGATE.sub("\ufffd", text)
    text = SPECIAL.sub("< ", text)
    # A single character, or white space, ends no turn; and a space would not break it.
    pattern = any_of(marker for marker in markers if len(marker.strip()) > 1)
    while pattern.search(text):  # again: what is left of one may be another
        text = pattern.sub(broken, text)
    return text


def broken(found: re.Match[str]) -> str:
    """With a space behind its first character that is none."""
    marker = found[0]
    first = len(marker) - len(marker.lstrip()) + 1
    return f"{marker[:first]} {marker[first:]}"
