"""Credit: from a sample's advantage to one for each of its tokens."""

from __future__ import annotations

from foresail.records import Sample


def uniform_credit(sample: Sample, advantage: float) -> list[float]:
    """Every token the same, for the reward came at the end: three tokens and .5 -> [.5, .5, .5]."""
    return [advantage] * len(sample.ids)
