"""Which responses of a query stay, and in what order: good ones that are unlike each other. Numbers only.

choose(quality, signatures, limit=2, quality_weight=0.5) -> [0, 2]: places, the first chosen in front

Legend: N rows of a corpus, m responses of a query, P numbers of a signature.
"""

from __future__ import annotations

import numpy as np

from foresail.curate.deduplicate.blocks import Array

AT_ONCE = 1 << 16  # signatures that are compared at once


def choose(quality_m: Array, signatures_mP: Array, limit: int, quality_weight: float) -> list[int]:
    """Maximal marginal relevance. Of equal scores the first place wins: sort what comes here."""
    nearest_m = np.zeros(len(quality_m))  # to the nearest of those chosen
    is_left_m = np.ones(len(quality_m), bool)
    chosen: list[int] = []
    while len(chosen) < min(limit, len(quality_m)):
        if chosen:
            np.maximum(nearest_m, similarities(signatures_mP, signatures_mP[chosen[-1]]), out=nearest_m)
        scores_m = quality_weight * quality_m + (1 - quality_weight) * (1 - nearest_m)
        place = int(np.where(is_left_m, scores_m, -np.inf).argmax())
        chosen.append(place)
        is_left_m[place] = False
    return chosen


def similarities(signatures_mP: Array, one_P: Array) -> Array:
    """Of one to each: the share of equal numbers, which estimates Jaccard's similarity."""
    parts = [
        np.mean(signatures_mP[begin : begin + AT_ONCE] == one_P, axis=1)
        for begin in range(0, len(signatures_mP), AT_ONCE)
    ]
    return np.concatenate(parts)


def quality_ranks(numbers_N: Array) -> Array:
    """quality_ranks([5, 1, -inf, 5]) -> [2/3, 1/6, 0, 2/3]: equal numbers share a rank, -inf is no number."""
    is_number_N = numbers_N > -np.inf
    ordered = np.sort(numbers_N[is_number_N])
    ranks_N = np.zeros(len(numbers_N))
    below, up_to = (np.searchsorted(ordered, numbers_N[is_number_N], side) for side in ("left", "right"))
    ranks_N[is_number_N] = (below + up_to) / (2 * max(len(ordered), 1))
    return ranks_N
