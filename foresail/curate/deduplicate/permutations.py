"""datasketch's permutations h -> a·h + b modulo 2³², its scheme "affine32": the default since its version 2."""

from __future__ import annotations

from functools import cache

import numpy as np

from foresail.curate.deduplicate.blocks import Array


@cache
def permutations(count: int, seed: int) -> tuple[Array, Array]:
    """a, which is odd, and b."""
    generator = np.random.RandomState(seed)
    a = generator.randint(0, 1 << 31, count, dtype=np.uint32) * np.uint32(2) + np.uint32(1)
    return a, generator.randint(0, 1 << 32, count, dtype=np.uint32)
