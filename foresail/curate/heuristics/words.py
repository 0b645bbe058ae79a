"""The words of a text, as arrays: a hash of each, its length, and what it consists of.

In scripts without spaces between words, a letter with its marks stands for a word: "ทำดี" has three, "你好" two.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from foresail.curate.heuristics.characters import (
    DIGIT,
    END,
    IDEOGRAPH,
    LEADING,
    LETTER,
    LOWER,
    MARK,
    SPACE,
    SYLLABLE,
    TRAILING,
    UPPER,
    Array,
)
from foresail.curate.heuristics.columns import (
    BEGINS_LOWER,
    BEGINS_UPPER,
    ENDS_IN_COMMA,
    ENDS_IN_POINT,
    ENDS_SENTENCE,
    FIRST_OF_LINE,
    HAS_LETTER,
    IS_IDEOGRAPH,
    IS_SYLLABLE,
    MIXED,
    SHOUTS,
    START,
    STOP,
)

compiled: Any = numba.njit(cache=True, nogil=True)

PRIME, MIX, STEP = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(29)
ONE, NOTHING = np.uint64(1), np.uint64(0)
COMMAS = (0x2C, 0x3B, 0x60C, 0x3001, 0xFF0C)
SINGLE = np.uint64(0xFFFFFF)


@compiled
def fold(hash: Any, code: int) -> Any:
    mixed = (hash + np.uint64(code) + ONE) * PRIME
    return mixed ^ (mixed >> STEP)


@compiled
def split_words(
    codes: Array, classes: Array, small: Array, families: Array, rows: Array
) -> tuple[Array, Array, Array, Array]:
    """Hashes, lengths, flags and line numbers of the words of the lines in `rows`."""
    size = 0
    for row in rows:
        size += row[STOP] - row[START]
    hashes, lengths = np.empty(size, np.uint64), np.empty(size, np.int32)
    flags, lines = np.empty(size, np.uint16), np.empty(size, np.int32)
    count = 0
    for line in range(len(rows)):
        place, stop, first = rows[line, START], rows[line, STOP], True
        while place < stop:
            if classes[codes[place]] == SPACE:
                place += 1
                continue
            begin = count
            place, count = split_run(
                codes, classes, small, families, place, stop, count, hashes, lengths, flags
            )
            for n in range(begin, count):
                lines[n] = line
            if first and count > begin:
                flags[begin] |= FIRST_OF_LINE
                first = False
    return hashes[:count], lengths[:count], flags[:count], lines[:count]


@compiled
def split_run(
    codes: Array,
    classes: Array,
    small: Array,
    families: Array,
    place: int,
    stop: int,
    count: int,
    hashes: Array,
    lengths: Array,
    flags: Array,
) -> tuple[int, int]:
    """The words up to the next space: usually one, which loses the signs around it."""
    hash, inner, signs, length, flag, uppers, family = NOTHING, NOTHING, 0, 0, 0, 0, 0
    begin = count
    while place < stop:
        code = codes[place]
        own = classes[code]
        if own == SPACE:
            break
        place += 1
        if own in (SYLLABLE, IDEOGRAPH, LEADING, TRAILING):
            if length:
                hashes[count], lengths[count], flags[count] = hash, length, flag
                count += 1
            hashes[count], lengths[count] = fold(NOTHING, code), 1
            flags[count] = HAS_LETTER | (IS_IDEOGRAPH if own == IDEOGRAPH else IS_SYLLABLE)
            while place < stop and classes[codes[place]] == MARK:
                hashes[count] = fold(hashes[count], codes[place])
                place += 1
            count += 1
            hash, inner, signs, length, flag, uppers, family = NOTHING, NOTHING, 0, 0, 0, 0, 0
            continue
        if own in (LETTER, UPPER, LOWER, DIGIT, MARK):
            if length == 0:
                flag = BEGINS_UPPER if own == UPPER else BEGINS_LOWER if own == LOWER else 0
                signs, inner = 0, NOTHING
            elif signs:
                hash, length = fold(hash, inner & SINGLE), length + signs
                signs, inner = 0, NOTHING
            hash = fold(hash, small[code] if code < 0x10000 else code)
            length += 1
            uppers += own == UPPER
            if own in (LETTER, UPPER, LOWER):
                flag |= HAS_LETTER
                other = families[code] if code < 0x10000 else 0
                if family and other and family != other:
                    flag |= MIXED
                family = other
            flag &= ~(ENDS_SENTENCE | ENDS_IN_POINT | ENDS_IN_COMMA)
            if uppers > 1 and uppers == length:
                flag |= SHOUTS
            else:
                flag &= ~SHOUTS
        else:
            inner, signs = fold(inner, code), signs + 1
            if code in COMMAS and length:
                flag |= ENDS_IN_COMMA
            if own == END:
                mark = ENDS_SENTENCE | (ENDS_IN_POINT if code == 0x2E and length > 3 else 0)
                if length:
                    flag |= mark
                elif count > begin:
                    flags[count - 1] |= mark
    if length:
        hashes[count], lengths[count], flags[count] = hash, length, flag
        count += 1
    elif count == begin:
        hashes[count], lengths[count], flags[count] = inner, signs, 0
        count += 1
    return place, count


@compiled
def hash_word(codes: Array, classes: Array, small: Array, families: Array) -> Any:
    """The hash that the first word of a text has."""
    size = len(codes)
    hashes, lengths, flags = np.empty(size, np.uint64), np.empty(size, np.int32), np.empty(size, np.uint16)
    split_run(codes, classes, small, families, 0, size, 0, hashes, lengths, flags)
    return hashes[0]
