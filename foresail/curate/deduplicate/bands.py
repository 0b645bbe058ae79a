"""How many bands of how many rows a signature is cut into: datasketch's rule.

Two documents of Jaccard similarity s agree in a band with probability s^rows, in any with 1 - (1 - s^rows)^bands.
The rule weighs what this errs by, below and above the threshold.
"""

from __future__ import annotations

import numpy as np

from foresail.curate.deduplicate.blocks import Array

POINTS = 512  # of Gauss and Legendre: exact far beyond what the choice needs


def best_bands(threshold: float, permutations: int, weights: tuple[float, float]) -> tuple[int, int]:
    """best_bands(0.8, 128, (0.5, 0.5)) -> (9, 13); `weights`: of false and of missed duplicates."""
    nodes, shares = np.polynomial.legendre.leggauss(POINTS)
    below, above = (nodes + 1) / 2 * threshold, threshold + (nodes + 1) / 2 * (1 - threshold)
    best, least = (1, 1), float("inf")
    for bands in range(1, permutations + 1):
        for rows in range(1, permutations // bands + 1):
            false = float(shares @ agreement(below, bands, rows)) * threshold / 2
            missed = float(shares @ (1 - agreement(above, bands, rows))) * (1 - threshold) / 2
            error = weights[0] * false + weights[1] * missed
            if error < least:
                best, least = (bands, rows), error
    return best


def agreement(similarity: Array, bands: int, rows: int) -> Array:
    """The probability that some band agrees."""
    return np.asarray(1 - (1 - similarity**rows) ** bands)
