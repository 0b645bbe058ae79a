"""Classes of characters: what the loops of `lines.py` and `words.py` know of a code point.

class_table()[ord("ก")] -> SYLLABLE: Thai letters stand without spaces between words
"""

from __future__ import annotations

import sys
import unicodedata
from functools import cache
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

OTHER, SPACE, NEWLINE, LETTER, UPPER, LOWER, SYLLABLE, IDEOGRAPH, MARK, DIGIT = range(10)
END, CLOSER, PUNCTUATION, SYMBOL, BROKEN, LEADING, TRAILING = range(10, 17)
BY_CATEGORY = {"Lu": UPPER, "Lt": UPPER, "Ll": LOWER, "Cc": BROKEN, "Cn": BROKEN, "Co": BROKEN, "Cs": BROKEN,
               "Cf": MARK, "Pe": CLOSER, "Pf": CLOSER, "Pi": CLOSER}  # fmt: skip
BY_MAIN_CATEGORY = {"L": LETTER, "M": MARK, "N": DIGIT, "P": PUNCTUATION, "S": SYMBOL, "Z": SPACE}
# letters of scripts that have no spaces between words
SYLLABLES = ((0xE00, 0xEFF), (0xF00, 0xFFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0xA9E0, 0xA9FF))
IDEOGRAPHS = ((0x3005, 0x3007), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
              (0xF900, 0xFAFF), (0xFF66, 0xFF9D), (0x20000, 0x33479))  # fmt: skip
ENDS = ".!?…。！？．｡؟۔।॥։።៕។‽"
CLOSERS = "\"'*_`"
LINE_ENDS = "\n\v\f\r\x1c\x1d\x1e\x85\u2028\u2029"  # as str.splitlines has them
BEFORE_CONSONANT = ((0xE40, 0xE44), (0xEC0, 0xEC4))  # vowels of Thai and Lao that are written first
AFTER_CONSONANT = (0xE30, 0xE32, 0xE33, 0xE45, 0xEB0, 0xEB2, 0xEB3)
LAST = 0x33480  # letters end here


@cache
def class_table() -> Array:
    """A class for each code point."""
    table = np.full(sys.maxunicode + 1, OTHER, np.uint8)
    categories = [unicodedata.category(chr(code)) for code in range(LAST)]
    table[:LAST] = [BY_CATEGORY.get(name, BY_MAIN_CATEGORY.get(name[0], OTHER)) for name in categories]
    for ranges, own in ((SYLLABLES, SYLLABLE), (IDEOGRAPHS, IDEOGRAPH)):
        for first, last in ranges:
            codes = np.arange(first, last + 1)
            table[codes[np.isin(table[codes], (LETTER, UPPER, LOWER))]] = own
    for first, last in BEFORE_CONSONANT:
        table[first : last + 1] = LEADING
    table[[*AFTER_CONSONANT]] = TRAILING
    for characters, own in (
        (ENDS, END),
        (CLOSERS, CLOSER),
        (LINE_ENDS, NEWLINE),
        ("\t", SPACE),
        ("\ufffd", BROKEN),
    ):
        table[[ord(character) for character in characters]] = own
    return table


# Latin letters that one meets in words of few languages, or in none: phonetic signs, letters for clicks
RARE_LATIN = (0x180, 0x2AF)
NOT_RARE = "ƁɓƊɗƘƙƳƴƐɛƆɔƉɖƑƒƔɣƲʋƏəƎǝƝɲƖɩƱʊƗɨɄʉƠơƯưȘșȚțǍǎǏǐǑǒǓǔǕǖǗǘǙǚǛǜȀȁȄȅ"
FAMILIES = ((0x370, 0x3FF), (0x400, 0x52F), (0x530, 0x58F), (0x590, 0x5FF), (0x600, 0x77F), (0x900, 0x97F))


@cache
def family_table() -> Array:
    """Which letters belong into one word: 1 Latin, 2 rare Latin, then one number for each of FAMILIES; 0 any."""
    table = np.zeros(0x10000, np.uint8)
    table[:0x250] = table[0x1E00:0x1F00] = 1
    table[RARE_LATIN[0] : RARE_LATIN[1] + 1] = 2
    table[[ord(character) for character in NOT_RARE]] = 1
    for number, (first, last) in enumerate(FAMILIES, 3):
        table[first : last + 1] = number
    table[0x1F00:0x2000] = 3  # Greek with accents
    return table


@cache
def lower_table() -> Array:
    """The small letter of each code point below 0x10000, where it is one code point."""
    table = np.arange(0x10000, dtype=np.uint32)
    for code in range(0x10000):
        small = chr(code).lower()
        if len(small) == 1:
            table[code] = ord(small)
    return table


def code_points(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
