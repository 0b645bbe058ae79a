"""Four windows of a long text, which stand for all of it."""

from __future__ import annotations

WINDOWS = 4


def windows(text: str, max_chars: int) -> str:
    """windows("abcdefgh", 4) -> "a\\nc\\ne\\nh": the beginning, the end, and two places between."""
    if len(text) <= max_chars:
        return text
    size = max(max_chars // WINDOWS, 1)
    starts = [(len(text) - size) * number // (WINDOWS - 1) for number in range(WINDOWS)]
    return "\n".join(text[start : start + size] for start in starts)
