"""Cuts a text into sentences, roughly: at ends of lines, and after . ! ? and their kin.

split_sentences("Ya. Tidak? 好的。") -> ["Ya.", "Tidak?", "好的。"]
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# No repeats: a million dots take no longer than a million letters.
END = re.compile(
    r"""\n|(?<=[.!?।…])\s|(?<=[.!?।…]["'”’)\]])\s|[。！？](?![。！？”」』）])|(?<=[。！？])[”」』）]"""
)


def split_sentences(text: str) -> list[str]:
    return [sentence for part in cut(text) if (sentence := part.strip())]


def cut(text: str) -> Iterator[str]:
    start = 0
    for end in END.finditer(text):
        yield text[start : end.end()]
        start = end.end()
    yield text[start:]
