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

compiled: Any = numba.njit(cache=True, nogil=True)

# columns of a line's row
START, STOP, CHARACTERS, INDENT, LETTERS, DIGITS, BROKENS, BRACKETS, OPERATORS, COMMANDS, DOLLARS, PIPES, BRACES, \
    FIRST, FINAL, ENDED, KIND, STRAY = range(18)  # fmt: skip
COLUMNS = 18
PROSE, CODE, MATHS, TABLE, ITEM, HEADING, EMPTY = range(7)  # KIND
ELLIPSIS, POINT = 0x2026, 0x2E


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
    mark_regions(codes, rows)
    return rows


@compiled
def fill_row(codes: Array, classes: Array, start: int, stop: int, row: Array) -> None:
    indent = 0
    while start < stop and classes[codes[start]] == SPACE:
        indent += 4 if codes[start] == 9 else 1
        start += 1
    while stop > start and classes[codes[stop - 1]] == SPACE:
        stop -= 1
    row[START], row[STOP], row[INDENT] = start, stop, indent
    if start == stop:
        row[KIND] = EMPTY
        return
    before = SPACE
    for place in range(start, stop):
        code, own = codes[place], classes[codes[place]]
        row[CHARACTERS] += own != SPACE
        if own in (LETTER, UPPER, LOWER, SYLLABLE, IDEOGRAPH, LEADING, TRAILING):
            row[LETTERS] += 1
            if code < 128 and before == 255:
                row[COMMANDS] += 1
        elif own == DIGIT:
            row[DIGITS] += 1
        elif own == BROKEN:
            row[BROKENS] += 1
        if is_stray(own, before):
            row[STRAY] += 1
        before = own
        if code < 128:
            if code == 92:  # a backslash, which may begin a command of LaTeX
                before = 255
                row[OPERATORS] += 1
            elif code in (123, 125):
                row[BRACES] += 1
                row[BRACKETS] += 1
            elif code in (40, 41, 91, 93):
                row[BRACKETS] += 1
            elif code in (61, 59, 60, 62, 95, 94, 38, 43, 42, 35, 64):  # = ; < > _ ^ & + * # @
                row[OPERATORS] += 1
            elif code == 36:
                row[DOLLARS] += 1
            elif code == 124:
                row[PIPES] += 1
    row[FIRST] = codes[start]
    final = stop - 1
    row[FINAL] = codes[final]
    while final > start and classes[codes[final]] == CLOSER:
        final -= 1
    row[ENDED] = classes[codes[final]] == END
    row[KIND] = kind_of_line(codes, classes, row)


@compiled
def is_stray(own: int, before: int) -> bool:
    """A mark or vowel that cannot stand where it does: after no letter, or a vowel before no consonant."""
    if own == TRAILING:
        return before not in (SYLLABLE, MARK, TRAILING)
    return before == LEADING and own != SYLLABLE


@compiled
def kind_of_line(codes: Array, classes: Array, row: Array) -> int:
    first, characters = row[FIRST], row[CHARACTERS]
    if row[PIPES] >= 2 and (first == 124 or row[PIPES] * 20 > characters):
        return TABLE
    if looks_like_code(row):
        return CODE
    if row[COMMANDS] or (row[DOLLARS] >= 2 and row[DOLLARS] % 2 == 0 and row[OPERATORS]):
        return MATHS
    if is_item(codes, classes, row):
        return ITEM
    if first == 35:
        return HEADING
    return PROSE


@compiled
def looks_like_code(row: Array) -> bool:
    signs, characters = row[BRACKETS] + row[OPERATORS], row[CHARACTERS]
    if row[COMMANDS] * 12 > characters:
        return False
    if row[FINAL] in (59, 123, 125) and signs * 8 > characters:  # ; { }
        return True
    if row[INDENT] >= 2 and signs * 10 > characters:
        return True
    return signs * 6 > characters and row[BRACKETS] >= 2 and characters >= 4 and row[OPERATORS] >= 1


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
        start < place < stop - 1 and codes[place] in (POINT, 41) and classes[codes[place + 1]] == SPACE
    )


BULLETS = (45, 42, 43, 0x2022, 0x2023, 0x25CF, 0x25CB, 0x25E6, 0x25AA, 0x25A0, 0x2013, 0xB7, 0x27A2, 0x2666)


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
        if mark in (96, 126) and stop - start >= 3 and codes[start + 1] == mark and codes[start + 2] == mark:
            if fence == 0:
                fence, opened = mark, line
            elif fence == mark:
                fence = 0
            row[KIND] = CODE
        elif fence:
            row[KIND] = CODE
        elif mark == 36 and stop - start >= 2 and codes[start + 1] == 36:
            row[KIND] = MATHS
            if row[DOLLARS] == 2:
                display, opened = not display, line
        elif display:
            row[KIND] = MATHS
            if row[DOLLARS] >= 2 and codes[stop - 1] == 36:
                display = False
    if fence or display:  # never closed
        rows[opened:, KIND] = own_kinds[opened:]


@compiled
def ends_in_ellipsis(codes: Array, row: Array) -> bool:
    stop = row[STOP]
    if row[FINAL] == ELLIPSIS:
        return True
    return bool(
        stop - row[START] >= 3
        and codes[stop - 1] == POINT
        and codes[stop - 2] == POINT
        and codes[stop - 3] == POINT
    )
