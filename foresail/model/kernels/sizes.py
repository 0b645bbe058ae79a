"""Sizes of blocks and grids. Triton's own functions of this kind take as long on the host as launching a kernel."""

from __future__ import annotations


def power_from(number: int) -> int:
    """The next power of two: 5 -> 8, 8 -> 8."""
    return 1 << (number - 1).bit_length()


def count_blocks(number: int, size: int) -> int:
    """7 things in blocks of 3 -> 3."""
    return -(-number // size)
