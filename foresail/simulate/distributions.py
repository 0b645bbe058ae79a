"""The distributions of a simulation: maximum entropy for a given mean and maximum.

They are a truncated exponential and, for counts, a truncated geometric distribution.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate


def exponential_rate(mean: float) -> float:
    """The rate at which an exponential truncated at 1 has this mean: 0 (uniform) for 0.5."""

    def mean_at(rate: float) -> float:
        return 0.5 - rate / 12 if abs(rate) < 1e-4 else 1 / rate - 1 / math.expm1(rate)

    return bisect(lambda rate: mean - mean_at(rate), -600.0, 600.0)


def exponential_quantile(share: float, rate: float) -> float:
    """The quantile of an exponential truncated at 1: exponential_quantile(0.25, 0) -> 0.25."""
    return share if abs(rate) < 1e-6 else -math.log1p(share * math.expm1(-rate)) / rate


def geometric_shares(mean: float, largest: int) -> list[float]:
    """Cumulative shares of counts from 1 with this mean: geometric_shares(2.0, 3) -> [1/3, 2/3, 1.0]."""

    def weights_at(rate: float) -> list[float]:
        raw = [rate * number for number in range(largest)]
        return [math.exp(power - max(raw)) for power in raw]

    def mean_at(rate: float) -> float:
        weights = weights_at(rate)
        return sum(number * weight for number, weight in enumerate(weights, start=1)) / sum(weights)

    weights = weights_at(bisect(lambda rate: mean_at(rate) - mean, -50.0, 50.0))
    shares = [part / sum(weights) for part in accumulate(weights)]
    return [*shares[:-1], 1.0]


def count_at(share: float, shares: list[float]) -> int:
    """count_at(0.5, [1/3, 2/3, 1.0]) -> 2."""
    return bisect_left(shares, share) + 1


def beta_width(valid_share: float, samples: int) -> float:
    """The a of Beta(a, a) for which this share of groups is neither all right nor all wrong.

    beta_width(7 / 9, 8) -> 1.0: with uniform probabilities each of 0 to 8 right has a share of a ninth.
    """
    if valid_share == 1:
        return math.inf
    if valid_share >= 1 - 2 ** (1 - samples):
        raise ValueError(
            f"workload.valid_share {valid_share} is out of reach: of coins tossed {samples} times each, "
            f"{1 - 2 ** (1 - samples):.3f} show both sides; lower it, or take more samples"
        )

    def share_at(log_width: float) -> float:
        a = math.exp(log_width)
        same = math.lgamma(a + samples) + math.lgamma(2 * a) - math.lgamma(a) - math.lgamma(2 * a + samples)
        return 1 - 2 * math.exp(same)

    return math.exp(bisect(lambda log_width: share_at(log_width) - valid_share, -12.0, 12.0))


def bisect(rising: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(200):
        middle = (low + high) / 2
        if rising(middle) < 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def normal_share(score: float) -> float:
    """normal_share(0) -> 0.5."""
    return 0.5 * (1 + math.erf(score / math.sqrt(2)))
