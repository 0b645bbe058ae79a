"""Repetition: lines and paragraphs that are there twice, n-grams that are, and the most frequent n-gram."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from foresail.curate.heuristics.characters import Array
from foresail.curate.heuristics.columns import CHARACTERS, EMPTY, KIND
from foresail.curate.heuristics.words import MIX, NOTHING, ONE, PRIME, STEP

compiled: Any = numba.njit(cache=True, nogil=True)


@compiled
def table_size(count: int) -> int:
    size = 16
    while size < 2 * count:
        size *= 2
    return size


@compiled
def slot_of(key: Any, keys: Array) -> Any:
    """Where a key lies in a hash table, or may lie. 0 marks a free slot, so that a key is never 0."""
    mask = np.uint64(len(keys) - 1)
    slot = (key * MIX >> STEP) & mask
    while keys[slot] != NOTHING and keys[slot] != key:
        slot = (slot + ONE) & mask
    return slot


@compiled
def gram_key(hashes: Array, start: int, n: int) -> Any:
    key = NOTHING
    for place in range(start, start + n):
        key = (key ^ hashes[place]) * PRIME
        key ^= key >> STEP
    return key | ONE


@compiled
def gram_shares(
    hashes: Array, lengths: Array, tops: Array, repeats: Array, scale: int
) -> tuple[Array, Array]:
    """For each n of `tops` and then of `repeats`, which rise: top_share and repeated_share of the n-grams."""
    keys = np.empty(table_size(len(hashes)), np.uint64)
    counts = np.empty(len(keys), np.int32)
    ends = np.zeros(len(lengths) + 1, np.int64)  # characters up to each word
    for place in range(len(lengths)):
        ends[place + 1] = ends[place] + lengths[place]
    grams = np.zeros(len(hashes), np.uint64)
    top, repeated, size = np.zeros(len(tops)), np.zeros(len(repeats)), 0
    for k in range(len(tops)):
        size = extend(grams, hashes, size, tops[k] * scale)
        top[k] = top_share(grams[: max(0, len(grams) - size + 1)], ends, size, keys, counts)
    for k in range(len(repeats)):
        size = extend(grams, hashes, size, repeats[k] * scale)
        repeated[k] = repeated_share(grams[: max(0, len(grams) - size + 1)], ends, size, keys)
    return top, repeated


@compiled
def extend(grams: Array, hashes: Array, size: int, n: int) -> int:
    """From keys of sequences of `size` words to those of `n` words."""
    for length in range(size, n):
        for place in range(len(hashes) - length):
            key = (grams[place] ^ hashes[place + length]) * PRIME
            grams[place] = key ^ (key >> STEP) | ONE
    return n


@compiled
def top_share(grams: Array, ends: Array, n: int, keys: Array, counts: Array) -> float:
    """Characters of the most frequent n-gram, all its occurrences, as a share of all characters."""
    keys[:] = NOTHING
    most, chars = 0, 0
    for start in range(len(grams)):
        slot = slot_of(grams[start], keys)
        if keys[slot] == NOTHING:
            keys[slot], counts[slot] = grams[start], 0
        counts[slot] += 1
        if counts[slot] >= most and counts[slot] > 1:
            own = ends[start + n] - ends[start]
            if counts[slot] > most or own > chars:
                most, chars = counts[slot], own
    return min(1.0, most * chars / max(ends[-1], 1))


@compiled
def repeated_share(grams: Array, ends: Array, n: int, keys: Array) -> float:
    """Characters in n-grams that stood before, as a share of all characters."""
    keys[:] = NOTHING
    start, repeated = 0, 0
    while start < len(grams):
        slot = slot_of(grams[start], keys)
        if keys[slot] == grams[start]:
            repeated += ends[start + n] - ends[start]
            start += n
        else:
            keys[slot] = grams[start]
            start += 1
    return repeated / max(ends[-1], 1)


@compiled
def block_keys(hashes: Array, lines: Array, rows: Array, paragraphs: bool) -> tuple[Array, Array]:
    """A key and the characters of each line with words, or of each paragraph: lines up to an empty one."""
    keys, sizes = np.zeros(len(rows), np.uint64), np.zeros(len(rows), np.int32)
    block, inside, word = -1, False, 0
    for line in range(len(rows)):
        if rows[line, KIND] == EMPTY:
            inside = False
            continue
        if not (paragraphs and inside):
            block += 1
        inside = True
        sizes[block] += rows[line, CHARACTERS]
        key = keys[block]
        while word < len(hashes) and lines[word] == line:
            key = (key ^ hashes[word]) * PRIME
            key ^= key >> STEP
            word += 1
        keys[block] = key | ONE
    return keys[: block + 1], sizes[: block + 1]


@compiled
def block_repeats(keys: Array, sizes: Array, smallest: int) -> tuple[float, float]:
    """Share of the blocks that stood before, of those that are not small; and of all their characters."""
    seen = np.zeros(table_size(len(keys)), np.uint64)
    repeated, large, characters, total = 0, 0, 0, 0
    for block in range(len(keys)):
        total += sizes[block]
        is_large = sizes[block] >= smallest
        large += is_large
        slot = slot_of(keys[block], seen)
        if seen[slot] == keys[block]:
            repeated += is_large
            characters += sizes[block]
        seen[slot] = keys[block]
    return repeated / max(large, 1), characters / max(total, 1)


@compiled
def variety(hashes: Array, window: int, n: int) -> float:
    """Different n-grams as a share of all, in the mean over stretches of `window` words; 1 if there is none."""
    keys = np.empty(table_size(window), np.uint64)
    different, total = 0, 0
    for start in range(0, len(hashes) - window + 1, window):
        keys[:] = NOTHING
        for place in range(start, start + window - n + 1):
            key = gram_key(hashes, place, n)
            slot = slot_of(key, keys)
            different += keys[slot] == NOTHING
            keys[slot] = key
            total += 1
    return different / total if total else 1.0


@compiled
def top_word(hashes: Array, counted: Array) -> float:
    """The share of the most frequent of the words that are counted, among all words."""
    keys = np.zeros(table_size(len(hashes)), np.uint64)
    counts = np.zeros(len(keys), np.int32)
    most = 0
    for place in range(len(hashes)):
        if counted[place]:
            key = hashes[place] | ONE
            slot = slot_of(key, keys)
            keys[slot] = key
            counts[slot] += 1
            most = max(most, counts[slot])
    return most / max(len(hashes), 1)
