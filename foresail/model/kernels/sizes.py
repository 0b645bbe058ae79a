"""Sizes of blocks and grids. Triton's own functions of this kind go through its compiler, microseconds a call."""

from __future__ import annotations


def power_from(number: int) -> int:
    """The next power of two: 5 -> 8, 8 -> 8, 0 -> 1."""
    return 1 << max(number - 1, 0).bit_length()


def count_blocks(number: int, size: int) -> int:
    """7 things in blocks of 3 -> 3."""
    return -(-number // size)
