"""Hashed features of a text: words, pairs of words, character n-grams, and a few shares of the whole.

    features = NgramFeatures(bits=18)
    indices, values = features.of("The cat sat.")     # sorted indices below 2**18, values of length about 1

Words are runs of letters, marks and digits; every digit counts as 0. Thai and Chinese, which have no spaces, are
covered by the character n-grams. Of a long text four windows are read.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np

from foresail.curate.quality.text_windows import windows
from foresail.rollout.drafts.compiled import compiled

SPACE, LETTER, DIGIT, OTHER = 0, 1, 2, 3
SHARES, LEVELS = 6, 16  # of SHARES numbers, each in LEVELS steps; they have the first buckets
RESERVED = SHARES * LEVELS
SHARE_VALUE = 0.25  # beside n-grams whose squares sum to 1
SHORTEST, LONGEST = 2, 5  # characters of an n-gram
FNV_START, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


class Features(NamedTuple):
    indices: np.ndarray  # int32
    values: np.ndarray  # float32


class NgramFeatures:
    """Holds the scratch space; use one in each thread."""

    def __init__(self, *, bits: int = 18, max_chars: int = 8000) -> None:
        self.bits, self.max_chars = bits, max_chars
        self._counts = np.zeros(1 << bits, np.float32)
        self._touched = np.empty(0, np.int32)

    def of(self, text: str) -> Features:
        codes = character_codes(windows(text, self.max_chars).lower())
        most = len(codes) * (LONGEST - SHORTEST + 3) + RESERVED
        if len(self._touched) < most:
            self._touched = np.empty(most, np.int32)
        classes = character_classes()
        total = count_ngrams(codes, classes, self._counts, self._touched)
        indices = np.sort(self._touched[:total])
        values = np.sqrt(self._counts[indices])
        self._counts[indices] = 0.0
        norm = float(np.sqrt(np.sum(values * values)))
        if norm:
            values /= np.float32(norm)
        levels = share_levels(codes, classes, len(text), total)
        own = np.arange(SHARES, dtype=np.int32) * LEVELS + np.array(levels, np.int32)
        return Features(
            np.concatenate([own, indices]),
            np.concatenate([np.full(SHARES, SHARE_VALUE, np.float32), values]),
        )


def character_codes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


@cache
def character_classes() -> np.ndarray:
    """Of the first 65,536 characters; the rest is OTHER."""
    classes = np.full(65536, OTHER, np.uint8)
    for code in range(65536):
        character = chr(code)
        kind = unicodedata.category(character)[0]
        if character.isspace():
            classes[code] = SPACE
        elif kind in "LM":
            classes[code] = LETTER
        elif kind == "N":
            classes[code] = DIGIT
    return classes


@compiled
def count_ngrams(codes: np.ndarray, classes: np.ndarray, counts: np.ndarray, touched: np.ndarray) -> int:
    """Adds to `counts`; the buckets that were 0 before go into `touched`. How many these are."""
    buckets = np.uint64(len(counts) - RESERVED)
    total = 0
    word = previous = np.uint64(0)  # the word so far, the one before
    in_word = False
    recent = np.zeros(LONGEST, np.uint32)  # characters, the newest last; spaces in a row are one
    known = 0
    for place in range(len(codes) + 1):
        code = codes[place] if place < len(codes) else np.uint32(32)
        kind = classes[code] if code < 65536 else OTHER
        if kind == DIGIT:
            code = np.uint32(48)
        elif kind == SPACE:
            code = np.uint32(32)
        ends_word = in_word and kind in (SPACE, OTHER)
        if ends_word:
            total = add(counts, touched, total, buckets, mix(word))
            total = add(
                counts, touched, total, buckets, mix(word ^ (previous * np.uint64(31)) ^ np.uint64(7))
            )
            previous = word
            in_word = False
        if kind == OTHER:
            previous = np.uint64(FNV_START) ^ np.uint64(code)
        elif kind != SPACE:
            if not in_word:
                word = np.uint64(FNV_START)
            word = (word ^ np.uint64(code)) * np.uint64(FNV_PRIME)
            in_word = True
        if kind == SPACE and known > 0 and recent[LONGEST - 1] == 32:
            continue
        for number in range(LONGEST - 1):
            recent[number] = recent[number + 1]
        recent[LONGEST - 1] = code
        known += 1
        gram = np.uint64(FNV_START + 1)
        for back in range(min(known, LONGEST)):
            gram = (gram ^ np.uint64(recent[LONGEST - 1 - back])) * np.uint64(FNV_PRIME)
            if back + 1 >= SHORTEST:
                total = add(counts, touched, total, buckets, mix(gram ^ np.uint64(back)))
    return total


@compiled
def mix(key: np.uint64) -> np.uint64:
    """The low bits of FNV depend on the low bits alone; this spreads the others over them."""
    key ^= key >> np.uint64(33)
    key *= np.uint64(0xFF51AFD7ED558CCD)
    key ^= key >> np.uint64(33)
    return key


@compiled
def add(counts: np.ndarray, touched: np.ndarray, total: int, buckets: np.uint64, key: np.uint64) -> int:
    bucket = np.int64(key % buckets) + RESERVED
    if counts[bucket] == 0.0:
        touched[total] = bucket
        total += 1
    counts[bucket] += np.float32(1.0)
    return total


@compiled
def count_classes(codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    counted = np.zeros(4, np.int64)
    for code in codes:
        counted[classes[code] if code < 65536 else OTHER] += 1
    return counted


def share_levels(codes: np.ndarray, classes: np.ndarray, length: int, distinct: int) -> list[int]:
    """Length in doublings; shares of letters, digits, others and spaces; distinct n-grams a character."""
    counted = count_classes(codes, classes)
    every = max(len(codes), 1)
    shares = [counted[kind] / every for kind in (LETTER, DIGIT, OTHER, SPACE)]
    rare = [min(int(np.sqrt(share) * LEVELS), LEVELS - 1) for share in shares]
    return [min(length.bit_length(), LEVELS - 1), *rare, min(int(distinct / every * 4), LEVELS - 1)]
