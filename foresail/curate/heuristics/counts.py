"""Counts over the words of a text, in one pass."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from foresail.curate.heuristics.characters import Array
from foresail.curate.heuristics.columns import (
    BEGINS_LOWER,
    BEGINS_UPPER,
    ENDED,
    ENDS_IN_COMMA,
    ENDS_IN_POINT,
    ENDS_SENTENCE,
    FIRST_OF_LINE,
    HAS_LETTER,
    IS_IDEOGRAPH,
    IS_SYLLABLE,
    KIND,
    MIXED,
    PROSE,
    SHOUTS,
    UNSPACED,
)
from foresail.curate.heuristics.repeats import slot_of, table_size

compiled: Any = numba.njit(cache=True, nogil=True)

LONG_WORD = 60  # characters
LEAST_STOPS = 0.15  # of the words of a line
# what count_words returns
WORDS, SYLLABLES, IDEOGRAPHS, WITH_LETTER, SPACED, SPACED_CHARACTERS, CHARACTERS, LONG, SHOUTING = range(9)
MIXING, SENTENCES, POINTS, LOWER_AFTER, STOPS, STOP_PAIRS, ODD_PAIRS, COMMAS = range(9, 17)
COUNTS = 17


@compiled
def count_words(lengths: Array, flags: Array, stops: Array, odd: Array) -> Array:
    """`stops`: the number of each word among the stop words, or -1; `odd`: which of them hardly follow which."""
    counts = np.zeros(COUNTS, np.int64)
    counts[WORDS] = len(lengths)
    for place in range(len(lengths)):
        flag, length = flags[place], lengths[place]
        counts[CHARACTERS] += length
        if flag & IS_SYLLABLE:
            counts[SYLLABLES] += 1
        elif flag & IS_IDEOGRAPH:
            counts[IDEOGRAPHS] += 1
        else:
            counts[SPACED] += 1
        if flag & HAS_LETTER:
            counts[WITH_LETTER] += 1
            if not flag & UNSPACED:
                counts[SPACED_CHARACTERS] += length
        if length > LONG_WORD:
            counts[LONG] += length
        counts[SHOUTING] += flag & SHOUTS > 0
        counts[MIXING] += flag & MIXED > 0
        counts[SENTENCES] += flag & ENDS_SENTENCE > 0
        counts[COMMAS] += flag & ENDS_IN_COMMA > 0
        counts[STOPS] += stops[place] >= 0
        if place and not flag & FIRST_OF_LINE:
            before = flags[place - 1]
            if before & ENDS_IN_POINT and flag & (BEGINS_LOWER | BEGINS_UPPER):
                counts[POINTS] += 1
                counts[LOWER_AFTER] += flag & BEGINS_LOWER > 0
            if stops[place] >= 0 and stops[place - 1] >= 0 and not before & ENDS_SENTENCE:
                counts[STOP_PAIRS] += 1
                counts[ODD_PAIRS] += odd[stops[place - 1], stops[place]]
    return counts


@compiled
def loose_words(stops: Array, lines: Array, rows: Array) -> float:
    """The share of words in lines of prose without an end and with few stop words: menus, lists of keywords."""
    words_L, stops_L = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for place in range(len(stops)):
        words_L[lines[place]] += 1
        stops_L[lines[place]] += stops[place] >= 0
    loose = 0
    for line in range(len(rows)):
        is_poor = stops_L[line] < LEAST_STOPS * words_L[line]
        if is_poor and not rows[line, ENDED] and rows[line, KIND] == PROSE:
            loose += words_L[line]
    return loose / max(len(stops), 1)


@compiled
def number_words(hashes: Array, slots: Array, numbers: Array, present_W: Array) -> Array:
    """The number of each word in a hash table, or -1; and in `present_W`, how often each number is there."""
    found = np.empty(len(hashes), np.int32)
    for place in range(len(hashes)):
        slot = slot_of(hashes[place], slots)
        found[place] = numbers[slot] if slots[slot] == hashes[place] else -1
        if found[place] >= 0:
            present_W[found[place]] += 1
    return found


@compiled
def keep_own(found: Array, own_W: Array) -> None:
    """Words of other languages are none."""
    for place in range(len(found)):
        if found[place] >= 0 and not own_W[found[place]]:
            found[place] = -1


@compiled
def hash_table(keys_W: Array) -> tuple[Array, Array]:
    slots = np.zeros(table_size(2 * len(keys_W)), np.uint64)
    numbers = np.zeros(len(slots), np.int32)
    for number in range(len(keys_W)):
        slot = slot_of(keys_W[number], slots)
        slots[slot], numbers[slot] = keys_W[number], number
    return slots, numbers
