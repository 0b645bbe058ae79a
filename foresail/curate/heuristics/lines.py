"""The lines of a text: what each consists of, and whether it is prose, code, maths, a table row or a list item.

line_rows(code_points("```\nx = 1\n```\nA line."), class_table()) -> four rows; the first three of kind CODE
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from foresail.curate.heuristics.characters import (
    BROKEN,
    CLOSER,
    DIGIT,
    END,
    IDEOGRAPH,
    LEADING,
    LETTER,
    LOWER,
    MARK,
    NEWLINE,
    SPACE,
    SYLLABLE,
    TRAILING,
    UPPER,
    Array,
)
from foresail.curate.heuristics.columns import (
    BRACES,
    BRACKETS,
    BROKENS,
    CHARACTERS,
    CODE,
    COLUMNS,
    COMMANDS,
    DIGITS,
    DOLLARS,
    ELLIPSIS,
    EMPTY,
    ENDED,
    FINAL,
    FIRST,
    HEADING,
    INDENT,
    ITEM,
    KIND,
    LETTERS,
    MATHS,
    MISREAD,
    OPERATORS,
    PIPES,
    PROSE,
    SIGNS,
    START,
    STOP,
    STRAY,
    TABLE,
)

compiled: Any = numba.njit(cache=True, nogil=True)

POINT, HASH, DOLLAR, BACKSLASH, PIPE, DOTS = 0x2E, 0x23, 0x24, 0x5C, 0x7C, 0x2026
AFTER_BACKSLASH = 255  # in place of a class
OPENING, CLOSING = (0x5B, 0x28), (0x5D, 0x29)
BULLETS = (
    0x2D,
    0x2A,
    0x2B,
    0x2022,
    0x2023,
    0x25CF,
    0x25CB,
    0x25E6,
    0x25AA,
    0x25A0,
    0x2013,
    0xB7,
    0x27A2,
    0x2666,
)
# words that begin a line of code
KEYWORDS = tuple(
    np.array([ord(character) for character in word], np.uint32)
    for word in (
        "def ", "class ", "import ", "from ", "return", "if ", "elif ", "else:", "for ", "while ", "try:",
        "except", "with ", "raise ", "assert ", "print(", "#include", "#define", "#if", "#endif", "public ",
        "private ", "static ", "function ", "const ", "let ", "var ", "fn ", "func ", "package ", "using ", "//",
        "/*", "*/", "@", "struct ", "typedef ", "int ", "void ", "} else", "pass", "self.", "async ", "export ",
        "use ", "namespace ",
    )
)  # fmt: skip
LONGEST_KEYWORD = max(len(word) for word in KEYWORDS)
KEYWORD_TABLE = np.zeros((len(KEYWORDS), LONGEST_KEYWORD), np.uint32)
for number, word in enumerate(KEYWORDS):
    KEYWORD_TABLE[number, : len(word)] = word


@compiled
def count_lines(codes: Array, classes: Array) -> int:
    count = 1
    for code in codes:
        if classes[code] == NEWLINE:
            count += 1
    return count


@compiled
def line_rows(codes: Array, classes: Array) -> Array:
    """A row of COLUMNS numbers for each line, empty ones too."""
    rows = np.zeros((count_lines(codes, classes), COLUMNS), np.int32)
    line, start = 0, 0
    for place in range(len(codes) + 1):
        if place == len(codes) or classes[codes[place]] == NEWLINE:
            fill_row(codes, classes, start, place, rows[line])
            line += 1
            start = place + 1
    spread_code(rows)
    mark_regions(codes, rows)
    return rows


@compiled
def fill_row(codes: Array, classes: Array, start: int, stop: int, row: Array) -> None:
    while start < stop and classes[codes[start]] == SPACE:
        row[INDENT] += 4 if codes[start] == 9 else 1
        start += 1
    while stop > start and classes[codes[stop - 1]] == SPACE:
        stop -= 1
    row[START], row[STOP] = start, stop
    if start == stop:
        row[KIND] = EMPTY
        return
    before, misread_until = SPACE, 0
    for place in range(start, stop):
        code, own = codes[place], classes[codes[place]]
        row[CHARACTERS] += own != SPACE
        if own in (LETTER, UPPER, LOWER, SYLLABLE, IDEOGRAPH, LEADING, TRAILING):
            row[LETTERS] += 1
            if code < 128 and before == AFTER_BACKSLASH:
                row[COMMANDS] += 1
        elif own == DIGIT:
            row[DIGITS] += 1
        elif own == BROKEN:
            row[BROKENS] += 1
        if is_stray(own, before):
            row[STRAY] += 1
        before = own
        if code < 128:
            if code == BACKSLASH:  # may begin a command of LaTeX
                before = AFTER_BACKSLASH
                row[OPERATORS] += 1
            else:
                count_sign(code, row)
        else:
            row[SIGNS] += code == DOTS
            if 0xC2 <= code <= 0xF4 and place >= misread_until:
                length = misread_length(codes, place, stop)
                row[MISREAD] += length
                misread_until = place + length
    row[FIRST] = codes[start]
    final = stop - 1
    row[FINAL] = codes[final]
    row[ELLIPSIS] = row[FINAL] == DOTS or (
        final - start >= 2
        and codes[final] == POINT
        and codes[final - 1] == POINT
        and codes[final - 2] == POINT
    )
    while final > start and classes[codes[final]] == CLOSER:
        final -= 1
    row[ENDED] = classes[codes[final]] == END
    row[KIND] = kind_of_line(codes, classes, row)
    while row[KIND] == HEADING and start < stop and codes[start] == HASH:  # of Markdown
        row[SIGNS] -= 1
        start += 1


@compiled
def count_sign(code: int, row: Array) -> None:
    if code in (0x7B, 0x7D):
        row[BRACES] += 1
        row[BRACKETS] += 1
    elif code in OPENING or code in CLOSING:
        row[BRACKETS] += 1
    elif code in (0x3D, 0x3B, 0x3C, 0x3E, 0x5F, 0x5E, 0x26, 0x2B, 0x2A, 0x40):  # = ; < > _ ^ & + * @
        row[OPERATORS] += 1
    elif code == HASH:
        row[SIGNS] += 1
        row[OPERATORS] += 1
    elif code == DOLLAR:
        row[DOLLARS] += 1
    elif code == PIPE:
        row[PIPES] += 1


@compiled
def is_stray(own: int, before: int) -> bool:
    """A mark or vowel that cannot stand where it does: after no letter, or a vowel before no consonant."""
    if own == TRAILING:
        return before not in (SYLLABLE, MARK, TRAILING)
    return before == LEADING and own != SYLLABLE


@compiled
def misread_length(codes: Array, place: int, stop: int) -> int:
    """How many characters from here are the bytes of one character, read as Latin-1: Ã© is two; 0: none."""
    more = 1 if codes[place] < 0xE0 else 2 if codes[place] < 0xF0 else 3
    if place + more >= stop:
        return 0
    for next_place in range(place + 1, place + 1 + more):
        code = codes[next_place]
        if not (0x80 <= code <= 0xBF or code in WINDOWS_1252):
            return 0
    return more + 1


WINDOWS_1252 = (
    0x20AC, 0x201A, 0x192, 0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039, 0x152, 0x17D, 0x2018,
    0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x17E, 0x178,
)  # fmt: skip


@compiled
def kind_of_line(codes: Array, classes: Array, row: Array) -> int:
    first, characters = row[FIRST], row[CHARACTERS]
    if row[PIPES] >= 2 and first == PIPE:
        return TABLE
    statement = row[FINAL] in (0x3B, 0x7B, 0x7D)  # ; { }
    if row[COMMANDS] and not statement:
        return MATHS
    if row[DOLLARS] >= 2 and row[DOLLARS] % 2 == 0 and not statement:
        return MATHS
    if looks_like_code(codes, row):
        return CODE
    if row[COMMANDS]:
        return MATHS
    if is_item(codes, classes, row):
        return ITEM
    if first == HASH and characters > 1:
        return HEADING
    return PROSE


@compiled
def looks_like_code(codes: Array, row: Array) -> bool:
    signs, characters = row[BRACKETS] + row[OPERATORS], row[CHARACTERS]
    if row[COMMANDS] * 12 > characters:
        return False
    if row[FINAL] in (0x3B, 0x7B, 0x7D) and signs * 10 > characters:
        return True
    if row[INDENT] >= 2 and signs * 10 > characters:
        return True
    if signs * 6 > characters >= 4 and row[BRACKETS] >= 2 and row[OPERATORS] >= 1:
        return True
    return (signs * 25 > characters or row[FINAL] == 0x3A or characters < 50) and begins_like_code(codes, row)


@compiled
def begins_like_code(codes: Array, row: Array) -> bool:
    """With a keyword, and without the end of a sentence."""
    if row[ENDED] and row[FINAL] != 0x3A:
        return False
    start, stop = row[START], row[STOP]
    for word in KEYWORD_TABLE:
        for n in range(LONGEST_KEYWORD + 1):
            if n == LONGEST_KEYWORD or word[n] == 0:
                return True
            if start + n >= stop or codes[start + n] != word[n]:
                break
    return False


@compiled
def is_item(codes: Array, classes: Array, row: Array) -> bool:
    """Begins with a bullet, or with a number and a point or bracket."""
    start, stop = row[START], row[STOP]
    if codes[start] in BULLETS:
        return bool(stop - start > 1 and classes[codes[start + 1]] == SPACE) or codes[start] >= 0xB7
    place = start
    while place < stop and place < start + 4 and classes[codes[place]] == DIGIT:
        place += 1
    return bool(
        start < place < stop - 1 and codes[place] in (POINT, 0x29) and classes[codes[place + 1]] == SPACE
    )


@compiled
def spread_code(rows: Array) -> None:
    """Indented lines, comments and short lines beside code are code too."""
    near = False
    for line in range(len(rows)):
        near = take_from_neighbour(rows[line], near)
    near = False
    for line in range(len(rows) - 1, -1, -1):
        near = take_from_neighbour(rows[line], near)


@compiled
def take_from_neighbour(row: Array, near: bool) -> bool:
    """Whether the next line has code beside it."""
    if row[KIND] == EMPTY:
        return near
    if near and row[KIND] in (PROSE, HEADING, ITEM) and (row[INDENT] >= 2 or row[FIRST] == HASH):
        row[KIND] = CODE
    return bool(row[KIND] == CODE)


@compiled
def mark_regions(codes: Array, rows: Array) -> None:
    """Lines between fences are code, those of a display of LaTeX are maths, whatever they look like."""
    fence, display, opened = 0, False, 0
    own_kinds = rows[:, KIND].copy()
    for line in range(len(rows)):
        row = rows[line]
        start, stop = row[START], row[STOP]
        if row[KIND] == EMPTY:
            continue
        mark = codes[start]
        if (
            mark in (0x60, 0x7E)
            and stop - start >= 3
            and codes[start + 1] == mark
            and codes[start + 2] == mark
        ):
            if fence == 0:
                fence, opened = mark, line
            elif fence == mark:
                fence = 0
            row[KIND] = CODE
        elif fence:
            row[KIND] = CODE
        elif opens_display(codes, row):
            row[KIND] = MATHS
            display, opened = not closes_display(codes, row) and not display, line
        elif display:
            row[KIND] = MATHS
            display = not closes_display(codes, row)
    if fence or display:  # never closed
        rows[opened:, KIND] = own_kinds[opened:]


@compiled
def opens_display(codes: Array, row: Array) -> bool:
    start, stop = row[START], row[STOP]
    if stop - start < 2:
        return False
    first, second = codes[start], codes[start + 1]
    return bool((first == DOLLAR and second == DOLLAR) or (first == BACKSLASH and second in OPENING))


@compiled
def closes_display(codes: Array, row: Array) -> bool:
    start, stop = row[START], row[STOP]
    if stop - start < 2 or (stop - start < 4 and opens_display(codes, row)):
        return False
    before, last = codes[stop - 2], codes[stop - 1]
    return bool((before == DOLLAR and last == DOLLAR) or (before == BACKSLASH and last in CLOSING))
