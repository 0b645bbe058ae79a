"""A seed for delays and kills that is another in every run of the tests; `FORESAIL_SEED=…` sets it.

It is printed, and pytest shows what a failed test printed: with that seed the test is run again.
"""

from __future__ import annotations

import os
import random


def random_seed() -> int:
    seed = int(os.environ.get("FORESAIL_SEED") or random.SystemRandom().randrange(10**6))
    print(f"to run this test again: FORESAIL_SEED={seed}")
    return seed
