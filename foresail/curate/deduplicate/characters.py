"""What each character is to deduplication: part of a word, a word of its own, a mark, or a separator.

Scripts without spaces between words (Han, kana, Thai, Lao, Myanmar, Khmer) have a token for each character.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

import numpy as np

SEPARATOR, WORD, UNSPACED, MARK = 0, 1, 2, 3
CHARACTERS = 0x110000

UNSPACED_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # 々〆〇
    (0x3041, 0x312F),  # kana, bopomofo
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xAA60, 0xAA7F),  # Myanmar
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # kana of half width
    (0x1AFF0, 0x1B16F),
    (0x20000, 0x323AF),
)
# how marks that may join the letter before them begin in UTF-8: U+0300 to U+036F, jamo, voiced kana
COMPOSABLE = (
    b"\xcc",
    b"\xcd",
    b"\xe1\x84",
    b"\xe1\x85",
    b"\xe1\x86",
    b"\xe1\x87",
    b"\xe3\x82\x99",
    b"\xe3\x82\x9a",
)
PIECE = re.compile(r"\S{1,256}")


@cache
def character_tables() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Kind and lower case of every code point."""
    kinds = np.zeros(CHARACTERS, np.uint8)
    lower = np.arange(CHARACTERS, dtype=np.int64)
    for code in (*range(0x18000), *range(0x1AFF0, 0x20000), *range(0xE0100, 0xE01F0)):
        character = chr(code)
        kinds[code] = kind_of(character)
        if len(lowered := character.lower()) == 1:
            lower[code] = ord(lowered)
    for first, last in ((0x18000, 0x1AFEF), (0x20000, 0x323AF)):  # letters without cases
        kinds[first : last + 1] = [kind_of(chr(code)) for code in range(first, last + 1)]
    return kinds, lower


def kind_of(character: str) -> int:
    category = unicodedata.category(character)
    if category[0] == "M":
        return MARK
    if category[0] not in "LN":
        return SEPARATOR
    code = ord(character)
    if category[0] == "L" and any(first <= code <= last for first, last in UNSPACED_RANGES):
        return UNSPACED
    return WORD


def composed(text: str) -> bytes:
    """UTF-8, with é as one character however it was written; by pieces: a run of marks takes its length squared."""
    content = text.encode("utf-8", "replace")
    if text.isascii() or not any(start in content for start in COMPOSABLE):
        return content
    return PIECE.sub(lambda piece: unicodedata.normalize("NFC", piece[0]), text).encode("utf-8", "replace")
