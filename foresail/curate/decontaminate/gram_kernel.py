"""N-grams as numbers, and the search for them: compiled loops.

An n-gram begins at each token and ends where its weight reaches a target. Words weigh the same; single letters and
digits half of that, for a formula or a table has many. It means something if it has two words.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from foresail.curate.decontaminate.folding import DIGIT, KIND, LETTER
from foresail.curate.decontaminate.hashing import NONE, ONE, U64, compiled, mixed, slot_of
from foresail.curate.decontaminate.token_kernel import SINGLE

HASHING_FILE = "6f421426"  # checksum of hashing.py: numba's cache notices a change in this file alone
BASE = U64(0x9E3779B97F4A7C15)  # of the polynomial that is the number of several tokens
MOST_TOKENS = 1024  # of an n-gram
FEWEST_DIFFERENT, FEWEST_WORDS = 4, 2  # tokens of an n-gram that means something


@compiled
def gram_ends(weights_t: Any, count: int, target: int, ends: Any) -> int:
    """Where the n-gram ends that begins at each token; how many there are."""
    end, weight = 0, 0
    for start in range(count):
        while weight < target and end < count:
            weight += weights_t[end]
            end += 1
        if weight < target:
            return start
        ends[start] = end
        weight -= weights_t[start]
    return count


@compiled
def gram_key(hashes: Any, start: int, end: int) -> Any:
    number = NONE
    for place in range(start, end):
        number = number * BASE + hashes[place]
    return mixed(number) | ONE


@compiled
def powers_of_base(powers: Any) -> None:
    powers[0] = ONE
    for place in range(1, len(powers)):
        powers[place] = powers[place - 1] * BASE


@compiled
def means_something(hashes: Any, traits: Any, start: int, end: int) -> bool:
    """Neither a row of a table nor "0 0 0 0"."""
    different = words = 0
    for place in range(start, end):
        words += (traits[place] & KIND) != DIGIT and traits[place] != (LETTER | SINGLE)
        new = True
        for before in range(start, place):
            if hashes[before] == hashes[place]:
                new = False
                break
        different += new
        if different >= FEWEST_DIFFERENT and words >= FEWEST_WORDS:
            return True
    return False


@compiled
def list_grams(
    hashes: Any, traits: Any, weights_t: Any, count: int, target: int, ends: Any, keys: Any
) -> int:
    """The keys of all n-grams that mean something; how many there are."""
    grams, size = gram_ends(weights_t, count, target, ends), 0
    for start in range(grams):
        if means_something(hashes, traits, start, ends[start]):
            keys[size] = gram_key(hashes, start, ends[start])
            size += 1
    return size


@compiled
def fill_table(gram_keys: Any, keys: Any, numbers: Any, filter: Any) -> None:
    """Key number n at its place in a hash table, and a bit for it in the filter that stands before the table."""
    shift = U64(64) - U64(bits_of(len(filter)) + 3)
    for n in range(len(gram_keys)):
        slot = slot_of(gram_keys[n], keys)
        keys[slot], numbers[slot] = gram_keys[n], n
        bit = gram_keys[n] >> shift
        filter[bit >> U64(3)] |= np.uint8(1 << int(bit & U64(7)))


@compiled
def bits_of(size: int) -> int:
    """bits_of(1024) -> 10."""
    bits = 0
    while (1 << bits) < size:
        bits += 1
    return bits


@compiled
def find_grams(
    hashes: Any, weights_t: Any, count: int, target: int, powers: Any, keys: Any, numbers: Any, filter: Any,
    hit_rows: Any,
) -> int:  # fmt: skip
    """Rows of `hit_rows`: number of an indexed n-gram, its first token, the one behind it. How many there are."""
    shift = U64(64) - U64(bits_of(len(filter)) + 3)
    end, weight, hits, number = 0, 0, 0, NONE
    for start in range(count):
        while weight < target and end < count:
            weight += weights_t[end]
            number = number * BASE + hashes[end]
            end += 1
        if weight < target:
            break
        key = mixed(number) | ONE
        bit = key >> shift
        if filter[bit >> U64(3)] & np.uint8(1 << int(bit & U64(7))):
            slot = slot_of(key, keys)
            if keys[slot] == key:
                hit_rows[hits, 0], hit_rows[hits, 1], hit_rows[hits, 2] = numbers[slot], start, end
                hits += 1
                if hits == len(hit_rows):
                    break
        weight -= weights_t[start]
        number -= hashes[start] * powers[end - start - 1]
    return hits


@compiled
def find_rows(
    hashes: Any, weights_t: Any, count: int, target: int, powers: Any, keys: Any, numbers: Any, filter: Any,
    first_row: Any, row_sizes: Any, row_keys: Any, first_hits: Any, hit_rows: Any,
) -> int:  # fmt: skip
    """As find_grams, of whole short rows: those that begin with n-gram number g are first_row[g] up to the next."""
    hits = 0
    for place in range(
        find_grams(hashes, weights_t, count, target, powers, keys, numbers, filter, first_hits)
    ):
        gram, start = first_hits[place, 0], first_hits[place, 1]
        for row in range(first_row[gram], first_row[gram + 1]):
            end = start + row_sizes[row]
            if end <= count and gram_key(hashes, start, end) == row_keys[row] and hits < len(hit_rows):
                hit_rows[hits, 0], hit_rows[hits, 1], hit_rows[hits, 2] = row, start, end
                hits += 1
    return hits
