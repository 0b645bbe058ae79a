"""A random permutation, one place at a time: shuffled(0, 5, "a"), …, shuffled(4, 5, "a") are 0 to 4 in some order.

A Feistel network over the smallest even number of bits; a number beyond the count is shuffled again.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

ROUNDS = 4


def shuffled(place: int, count: int, *key: object) -> int:
    half = max(1, -(-(count - 1).bit_length() // 2))
    seeds = round_seeds(key)
    while True:
        left, right = place >> half, place & ((1 << half) - 1)
        for seed in seeds:
            left, right = right, left ^ mixed(seed, right, half)
        place = (left << half) | right
        if place < count:
            return place


@lru_cache(maxsize=1024)
def round_seeds(key: tuple[object, ...]) -> tuple[bytes, ...]:
    digest = blake2b("\x1f".join(map(str, key)).encode(), digest_size=16 * (ROUNDS // 2)).digest()
    return tuple(digest[at : at + 8] for at in range(0, len(digest), 8))


def mixed(seed: bytes, number: int, bits: int) -> int:
    digest = blake2b(number.to_bytes(8, "little"), digest_size=8, key=seed).digest()
    return int.from_bytes(digest, "little") & ((1 << bits) - 1)
