"""Sorts documents by rank within their group, such as a language: below, between or above two quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foresail.curate.select.copies import TRAITS, read_traits


def decide_by_rank(
    features: Sequence[Path], decisions: Sequence[Path], least: float, most: float
) -> dict[str, Any]:
    """-1, 0 or 1 for each document; one without the number stays. Bounds by group as figures."""
    pieces, names = read_traits(features)
    traits = np.concatenate(pieces) if pieces else np.empty(0, TRAITS)
    sides = np.zeros(len(traits), np.int8)
    scored = ~np.isnan(traits["quality"])
    bounds = {}
    for group, name in enumerate(names):
        own = np.flatnonzero(scored & (traits["group"] == group))
        if not len(own):
            continue
        numbers = traits["quality"][own]
        ordered = np.sort(numbers)
        low = ordered[min(int(np.ceil(least * len(own))), len(own) - 1)] if least else -np.inf
        high = ordered[max(int(np.floor(most * len(own))) - 1, 0)] if most < 1 else np.inf
        sides[own] = np.where(numbers < low, -1, np.where(numbers > high, 1, 0))
        bounds[name or "none"] = [float(ordered[0]), float(low), float(high), float(ordered[-1])]
    ends = np.cumsum([len(piece) for piece in pieces])
    for file, part in zip(decisions, np.split(sides, ends[:-1]), strict=True):
        part.tofile(file)
    finite = {name: [number for number in row if np.isfinite(number)] for name, row in bounds.items()}
    return {
        "documents": len(traits),
        "low": int(np.sum(sides < 0)),
        "high": int(np.sum(sides > 0)),
        "without_the_number": int(np.sum(~scored)),
        "bounds": finite,
    }
