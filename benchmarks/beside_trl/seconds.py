"""Where the time of a few steps went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any


def median_seconds(steps: Sequence[dict[str, Any]], parts: Iterable[str]) -> dict[str, float]:
    """By part; empty where a side was stopped before there was a step to count."""
    if not steps:
        return {}
    return {part: median(step["seconds"].get(part, 0.0) for step in steps) for part in parts}
