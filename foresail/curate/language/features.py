"""What a language is told by: hashed n-grams of one to five letters, and whole words.

    "Ia tidak, bahwa 12!" is read as " ia tidak bahwa ": lower case; all that is no letter of the text's main script
    is one space. N-grams cross spaces, so that " di s" is a feature.

The kernels that walk over the letters are in `kernel.py`.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache

import numpy as np

ACCENT = re.compile("[\u0300-\u036f]")
PIECE = 256  # of a text at once: the time of normalize is quadratic in a run of accents

# Which letters count together, and how much one says beside a Latin one. A text is read in its main script only:
# a Thai sentence with English names is Thai.
OTHER, LATIN, THAI, HAN = 1, 2, 3, 4
SCRIPT_WEIGHTS = np.array([0, 1, 1, 1, 3], dtype=np.int64)
BLOCKS = (
    (0x0E00, 0x0E80, THAI),
    (0x2E80, 0x3100, HAN),
    (0x3100, 0x3130, HAN),
    (0x3400, 0xA000, HAN),
    (0xF900, 0xFB00, HAN),
    (0xAC00, 0xD7B0, HAN),
    (0xFF66, 0xFFA0, HAN),
)


def code_points(text: str) -> np.ndarray:
    """Lower-case code points, letters with their accents in one; lone surrogates pass."""
    if ACCENT.search(text) is not None:
        text = "".join(
            unicodedata.normalize("NFC", text[start : start + PIECE]) for start in range(0, len(text), PIECE)
        )
    return np.frombuffer(text.lower().encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


@cache
def script_table() -> np.ndarray:
    """The script of each code point of the first plane; 0 where there is no letter or mark."""
    categories = (unicodedata.category(chr(code))[0] for code in range(0x10000))
    table = np.fromiter((category in "LM" for category in categories), dtype=np.uint8, count=0x10000)
    latin = np.zeros(0x10000, dtype=bool)
    latin[:0x370] = latin[0x1E00:0x1F00] = latin[0x2C60:0x2C80] = latin[0xA720:0xA800] = True
    table[(table == OTHER) & latin] = LATIN
    for first, end, script in BLOCKS:
        part = table[first:end]
        part[part == OTHER] = script
    return table
