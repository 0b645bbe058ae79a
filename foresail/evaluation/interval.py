"""95 % intervals for a mean over problems, whose scores lie in [0, 1] unless they are rewards.

Samples of one problem are not independent of each other, so the problem is the unit: each gives one score, and only
more problems make an interval narrower.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

Z = 1.959963984540054  # the normal distribution's 97.5 % point
RESAMPLES = 2000
BLOCK = 1_000_000  # indices made at once, so that memory stays flat however many problems there are


def confidence_interval(scores: Sequence[float]) -> tuple[float, float]:
    """Wilson's interval where every problem scored 0 or 1, else the bootstrap over problems.

    confidence_interval([1, 1, 1, 1]) -> (0.51, 1.0): four problems do not prove a perfect model.
    """
    if not scores:
        raise ValueError("an interval needs at least one problem's score")
    if all(score in (0, 1) for score in scores):
        return wilson_interval(round(sum(scores)), len(scores))
    return bootstrap_interval(scores)


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """wilson_interval(5, 10) -> (0.24, 0.76). Holds near 0 and 1, where mean ± 2 standard errors does not."""
    share, weight = successes / trials, Z * Z / trials
    centre = (share + weight / 2) / (1 + weight)
    reach = Z * sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
    # The bounds touch 0 and 1 exactly there; rounding must not move them past.
    low = 0.0 if successes == 0 else centre - reach
    high = 1.0 if successes == trials else centre + reach
    return low, high


def bootstrap_interval(scores: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """For scores in [0, 1]. One problem says nothing about others: (0.0, 1.0)."""
    if len(scores) == 1:
        return 0.0, 1.0
    low, high = unbounded_interval(scores, seed=seed)
    return max(0.0, low), min(1.0, high)


def unbounded_interval(scores: Sequence[float], *, seed: int = 0) -> tuple[float, float]:
    """The middle 95 % of the means of resampled problems, two at least, widened by sqrt(n / (n - 1)).

    The widening makes up for a resample's variance, which is (n - 1) / n of the honest one.
    """
    scores_N = np.asarray(scores, dtype=np.float64)
    n = len(scores_N)
    rng = np.random.default_rng(seed)
    rows = max(1, BLOCK // n)
    means_R = np.concatenate(
        [
            scores_N[rng.integers(n, size=(min(rows, RESAMPLES - done), n))].mean(axis=1)
            for done in range(0, RESAMPLES, rows)
        ]
    )
    mean = scores_N.mean()
    low, high = mean + sqrt(n / (n - 1)) * (np.quantile(means_R, [0.025, 0.975]) - mean)
    return float(low), float(high)
