"""The order in which problems are seen, as a pure function: a run's data position is one integer.

Every pass over the data is a fresh permutation. Resuming needs no generator state, only the position.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np


def problem_at(position: int, count: int, seed: int) -> int:
    """Which of `count` problems comes at `position`.

    Positions 0, 1, 2 of 3 problems give each problem once, and so do positions 3, 4, 5, in a new order.
    """
    epoch, place = divmod(position, count)
    return int(permutation(count, seed, epoch)[place])


@lru_cache(maxsize=8)  # the orders of five levels, and of some the next pass
def permutation(count: int, seed: int, epoch: int) -> np.ndarray:
    # Raw Philox bits are the same in every numpy; what Generator.permutation makes of them may change.
    keys = np.random.Philox(np.random.SeedSequence((seed, epoch))).random_raw(count)
    return np.argsort(keys, kind="stable")
