"""Finds the part of a text that repeats itself: a period, and how far it goes on. Compiled; linear in the text.

    find_loops(codes, 8, 20)  of "a. We add two. We add two. We add two. We a"  -> start, period 12, length 40

A gram of letters that stood before gives a distance; from there the text is compared with itself that far back.
Each letter is compared once, as the search goes on behind what was compared.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray
compiled: Any = numba.njit(cache=True, nogil=True)

PRIME = np.uint64(0x9E3779B97F4A7C15)
SHIFT = np.uint64(29)


@compiled
def gram_keys(codes: Array, size: int) -> Array:
    """A key for each place where `size` letters begin."""
    count = max(0, len(codes) - size + 1)
    keys = np.zeros(count, np.uint64)
    for start in range(count):
        key = np.uint64(7)
        for place in range(start, start + size):
            key = (key ^ np.uint64(codes[place])) * PRIME
            key ^= key >> SHIFT
        keys[start] = key
    return keys


@compiled
def find_loops(codes: Array, size: int, least: int) -> tuple[Array, int, int]:
    """Rows of start, period and length of loops with `least` letters at least; their number; steps that it took."""
    keys = gram_keys(codes, size)
    slots = 16
    while slots < 2 * len(keys):
        slots *= 2
    last = np.full(slots, -1, np.int64)
    mask = np.uint64(slots - 1)
    rows = np.zeros((64, 3), np.int64)
    count, steps, done = 0, len(codes) * size, 0
    for start in range(len(keys)):
        slot = keys[start] & mask
        before = last[slot]
        last[slot] = start
        steps += 1
        if before < 0 or start < done or keys[before] != keys[start]:
            continue
        period = start - before
        end = start
        while end < len(codes) and codes[end] == codes[end - period]:
            end += 1
            steps += 1
        first = before
        # Not further back than what was compared before: so that no letter is compared often.
        while first > done and first - period >= 0 and codes[first - 1] == codes[first - 1 + period]:
            first -= 1
            steps += 1
            if start - first > 4 * period + 64:
                break
        length = end - first
        if end - start >= size:
            done = end - size + 1
        if length >= 2 * period and length >= least and count < len(rows):
            rows[count, 0], rows[count, 1], rows[count, 2] = first, period, length
            count += 1
    return rows[:count], count, steps


@compiled
def repeated_letters(codes: Array, size: int) -> tuple[int, int]:
    """Letters in grams of `size` letters that stood before, each counted once; steps that it took."""
    keys = gram_keys(codes, size)
    slots = 16
    while slots < 2 * len(keys):
        slots *= 2
    seen = np.zeros(slots, np.uint64)
    mask = np.uint64(slots - 1)
    repeated, covered, steps = 0, 0, len(codes) * size
    for start in range(len(keys)):
        slot = keys[start] & mask
        steps += 1
        if seen[slot] == keys[start]:
            repeated += start + size - max(covered, start)
            covered = start + size
        else:
            seen[slot] = keys[start]
    return repeated, steps
