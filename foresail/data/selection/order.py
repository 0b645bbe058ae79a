"""The order in which problems are seen, as a pure function: a run's data position is one integer.

Every pass over the data is a fresh permutation. Resuming needs no generator state, only the position: random
numbers, too, are a function of it.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache

import numpy as np


def problem_at(position: int, count: int, seed: int) -> int:
    """Which of `count` problems comes at `position`.

    Positions 0, 1, 2 of 3 problems give each problem once, and so do positions 3, 4, 5, in a new order.
    """
    epoch, place = divmod(position, count)
    return int(permutation(count, seed, epoch)[place])


@lru_cache(maxsize=64)  # the orders of a mixture's sources and levels, and of some the next pass
def permutation(count: int, seed: int, epoch: int) -> np.ndarray:
    # Raw Philox bits are the same in every numpy; what Generator.permutation makes of them may change.
    keys = np.random.Philox(np.random.SeedSequence((seed, epoch))).random_raw(count)
    return np.argsort(keys, kind="stable")


def uniforms(*place: object) -> tuple[float, float]:
    """Two independent numbers in [0, 1): uniforms("easy", seed, step, launch)."""
    text = "\x1f".join(map(str, place))
    digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
    # 53 bits: all a float holds, so that none rounds up to 1
    first, second = (int.from_bytes(part, "little") >> 11 for part in (digest[:8], digest[8:]))
    return first * 2.0**-53, second * 2.0**-53
