"""The memory of all groups' automata in a single array, so that one call can serve all groups.

A slab for n tokens is 28 n numbers of 4 bytes. Growing moves a group to a slab of twice the size. Freed slabs are
used again for the same size.
"""

from __future__ import annotations

import numpy as np

from foresail.rollout.drafts.suffixes import SLAB_PER_TOKEN, clear, copy_into

SMALLEST = 64  # tokens


class Slabs:
    """take, grow, give: by the first address of a slab and the tokens it holds, a power of two."""

    def __init__(self) -> None:
        self.memory = np.empty(SMALLEST * SLAB_PER_TOKEN, dtype=np.int32)
        self.used = 0
        self.free: dict[int, list[int]] = {}  # capacity -> starts

    def take(self, tokens: int) -> tuple[int, int]:
        """An empty slab for at least `tokens` tokens: its start and its capacity."""
        start, capacity = self._reserve(tokens)
        clear(self.slab(start, capacity))
        return start, capacity

    def grow(self, start: int, capacity: int, tokens: int) -> tuple[int, int]:
        """Move an automaton to a slab for at least `tokens` tokens."""
        new_start, new_capacity = self._reserve(tokens)
        copy_into(self.slab(new_start, new_capacity), self.slab(start, capacity))
        self.give(start, capacity)
        return new_start, new_capacity

    def give(self, start: int, capacity: int) -> None:
        self.free.setdefault(capacity, []).append(start)

    def slab(self, start: int, capacity: int) -> np.ndarray:
        return self.memory[start : start + capacity * SLAB_PER_TOKEN]

    def _reserve(self, tokens: int) -> tuple[int, int]:
        capacity = max(SMALLEST, 1 << (tokens - 1).bit_length())
        if self.free.get(capacity):
            return self.free[capacity].pop(), capacity
        start, self.used = self.used, self.used + capacity * SLAB_PER_TOKEN
        if self.used > len(self.memory):
            larger = np.empty(max(self.used, 2 * len(self.memory)), dtype=np.int32)
            larger[:start] = self.memory[:start]
            self.memory = larger
        return start, capacity
