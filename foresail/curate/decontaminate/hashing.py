"""What the compiled loops over tokens and over n-grams share: how a number is mixed, and a hash table's slots.

Their files name the checksum of this one: numba's cache notices a change in a function's own file alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

compiled: Any = njit(cache=True, nogil=True)

U64: Any = np.uint64
PRIME, MIX = U64(0x100000001B3), U64(0xFF51AFD7ED558CCD)
STEP, HIGH = U64(29), U64(32)
ONE, NONE = U64(1), U64(0)


@compiled
def mixed(number: Any) -> Any:
    number = (number ^ (number >> HIGH)) * MIX
    number = (number ^ (number >> STEP)) * PRIME
    return number ^ (number >> HIGH)


@compiled
def slot_of(key: Any, keys: Any) -> Any:
    """Where a key lies in a hash table, or may lie; 0 marks a free slot."""
    mask = U64(len(keys) - 1)
    slot = (key >> STEP) & mask
    while keys[slot] != NONE and keys[slot] != key:
        slot = (slot + ONE) & mask
    return slot
