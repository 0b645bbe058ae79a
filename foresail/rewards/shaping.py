"""Terms that are added to a reward and say nothing about the answer. All are off unless a recipe asks."""

from __future__ import annotations


def overlong_penalty(num_tokens: int, *, limit: int, buffer: int, factor: float) -> float:
    """DAPO's soft punishment: 0 until `limit - buffer` tokens, then down in a line to `-factor` at the limit.

    overlong_penalty(90, limit=100, buffer=20, factor=1.0) -> -0.5; a buffer of 0 turns it off.
    """
    if buffer == 0:
        return 0.0
    excess = num_tokens - (limit - buffer)
    return -factor * min(max(excess / buffer, 0.0), 1.0)
