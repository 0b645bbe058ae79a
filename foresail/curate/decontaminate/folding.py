"""One form for each letter, whatever way it is written: what the kernel knows of a code point.

Letters lose case, marks, width and style (NFKD): É, ｅ and 𝐞 are e. Cyrillic and Greek letters that look like Latin
ones become these, zero-width signs and marks vanish, and ﬁ becomes two letters. Everything else separates words.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any

import numpy as np

from foresail.curate.deduplicate.characters import UNSPACED_RANGES

Array = np.ndarray[Any, Any]
# of a code point; UPPER is added to a letter that has a small one
SEPARATOR, LETTER, DIGIT, IDEOGRAPH, SYLLABLE, NOTHING, SEVERAL = range(7)
UPPER, KIND = 8, 7
CHARACTERS = 0x110000
DECOMPOSED = tuple(
    code
    for first, last in (
        (0, 0x33FF),
        (0x9FFF, 0xABFF),
        (0xD7A4, 0x17FFF),
        (0x1AFF0, 0x1FFFF),
        (0x2F800, 0x2FA1F),
    )
    for code in range(first, last + 1)
) + tuple(range(0xE0000, 0xE01F0))
PLAIN = (  # no code point of these has another form; Hangul that is written in parts is composed before
    (0x3400, 0x4DBF, IDEOGRAPH),
    (0x4E00, 0x9FFE, IDEOGRAPH),
    (0xAC00, 0xD7A3, LETTER),
    (0x18000, 0x1AFEF, LETTER),
    (0x20000, 0x2F7FF, IDEOGRAPH),
    (0x30000, 0x323AF, IDEOGRAPH),
)
JAMO = re.compile("[\u1100-\u11ff]")
LONGEST = 18  # letters of U+FDFA, the longest of those that become several
SYLLABLES = (
    (0x0E00, 0x0EFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0xAA60, 0xAA7F),
)  # Thai, Lao, Myanmar, Khmer
ALIKE = dict(
    zip(
        "аеорсухіјѕһԁԛԝвнмткьүӏ" + "οανρικυχτεηωβγζμ" + "օսհոցք" + "đøłıðħŧɑɡʏʀɪɴʟƒȷꜰꜱʙɢʜᴀᴄᴅᴇᴊᴋᴍᴏᴘᴛᴜᴠᴡᴢ",
        "aeopcyxijshdqwbhmtkbyl" + "oavpikuxtenwbyzm" + "ouhngp" + "dolidhtagyrinlfjfsbghacdejkmoptuvwz",
        strict=True,
    )
)
APOSTROPHES = "'’‘ʼʹ′´＇`"


@cache
def fold_tables() -> tuple[Array, Array, Array]:
    """Kind and folded letter of every code point; for SEVERAL the letter is a row of the third table.

    Such a row begins with LETTER if all its letters are one word, or part of one; else with SEVERAL.
    """
    kinds = np.full(CHARACTERS, SEPARATOR, np.uint8)
    letters = np.arange(CHARACTERS, dtype=np.uint32)
    several: list[str] = []
    for code in DECOMPOSED:
        text = fold_character(chr(code))
        if len(text) > 1:
            kinds[code], letters[code] = SEVERAL, len(several)
            several.append(text)
        elif text.strip():
            kinds[code], letters[code] = kind_of(text), ord(text)
            if kinds[code] == LETTER and chr(code) != chr(code).lower():
                kinds[code] |= UPPER
        elif not text:
            kinds[code] = NOTHING
    for code in range(0xFF01, 0xFF5F):
        if kinds[code] == SEPARATOR:
            letters[code] = code - 0xFEE0
    for first, last, kind in PLAIN:
        kinds[first : last + 1] = kind
    table = np.zeros((max(1, len(several)), LONGEST + 1), np.uint32)
    for row, text in enumerate(several):
        table[row, 1 : len(text) + 1] = [ord(letter) for letter in text]
        own = {kind_of(letter) for letter in text}
        table[row, 0] = LETTER if own == {LETTER} else SEVERAL
    return kinds, letters, table


def fold_character(character: str) -> str:
    """Letters and digits in one form; a space for what separates words; nothing for what is no sign of its own."""
    if character in APOSTROPHES:
        return ""
    if unicodedata.category(character) in ("Cf", "Mn", "Mc", "Me"):
        return ""
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    parts = []
    for letter in text:
        category = unicodedata.category(letter)
        if category[0] == "L":
            parts.append(ALIKE.get(letter, letter))
        elif category == "Nd":
            parts.append(str(unicodedata.digit(letter)))
        elif category[0] == "N":
            parts.append(letter)
        elif category[0] != "M":
            parts.append(" ")
    folded = "".join(parts)
    return folded if folded.strip() or not folded else " "


def kind_of(letter: str) -> int:
    """Of a folded one."""
    code = ord(letter)
    if any(first <= code <= last for first, last in SYLLABLES):
        return SYLLABLE if unicodedata.category(letter)[0] == "L" else SEPARATOR
    if any(first <= code <= last for first, last in UNSPACED_RANGES):
        return IDEOGRAPH
    category = unicodedata.category(letter)
    return LETTER if category[0] == "L" else DIGIT if category[0] == "N" else SEPARATOR


def composed(text: str) -> str:
    """Hangul as syllables; all else is left to the tables."""
    return text if text.isascii() or not JAMO.search(text) else unicodedata.normalize("NFC", text)


def code_points(text: str) -> Array:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
