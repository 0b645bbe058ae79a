"""Random permutations of n numbers, computed place by place without a shuffle in memory.

    permute(np.arange(5), 5, "web", 0) -> every number below 5 once, in the order of the key ("web", 0)

A Feistel network permutes the numbers of an even number of bits; a result of n or more is permuted again until it
is below n.
"""

from __future__ import annotations

import hashlib

import numpy as np

ROUNDS = 6
STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def permute(places: np.ndarray, count: int, *key: object) -> np.ndarray:
    """The image of each of these places, all below `count`, under the key's permutation."""
    half = np.uint64(max(1, -(-max(1, (count - 1).bit_length()) // 2)))
    keys = round_keys(key)
    numbers = places.astype(np.uint64)
    beyond = np.ones(len(numbers), bool)
    while beyond.any():  # four times at the most, on average
        numbers[beyond] = encipher(numbers[beyond], half, keys)
        beyond = numbers >= np.uint64(count)
    return numbers.astype(np.int64)


def encipher(numbers: np.ndarray, half: np.uint64, keys: list[np.uint64]) -> np.ndarray:
    mask = np.uint64((1 << int(half)) - 1)
    left, right = numbers >> half, numbers & mask
    for key in keys:
        left, right = right, left ^ (mix(right + key) & mask)
    joined: np.ndarray = (left << half) | right
    return joined


def mix(numbers: np.ndarray) -> np.ndarray:
    """A hash: every input bit changes about half of the output bits."""
    numbers = (numbers + STEP) * FIRST
    numbers = (numbers ^ (numbers >> np.uint64(29))) * SECOND
    return numbers ^ (numbers >> np.uint64(32))


def round_keys(key: tuple[object, ...]) -> list[np.uint64]:
    text = "\x1f".join(map(str, key))
    digest = hashlib.blake2b(text.encode(), digest_size=8 * ROUNDS).digest()
    return [np.uint64(word) for word in np.frombuffer(digest, "<u8")]
