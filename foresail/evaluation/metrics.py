"""Estimators for one problem, from the verdicts of its samples: pass@k and maj@k.

n is the number of samples that were judged, c how many of them are correct, k how many one may choose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

import numpy as np


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that k of the n samples, chosen at random, hold a correct one.

    pass_at_k(4, 1, 2) -> 0.5. This is 1 - C(n-c, k) / C(n, k), the unbiased estimator of Chen et al. (2021),
    as a product so that no large binomial appears.
    """
    if not 0 <= c <= n or not 1 <= k <= n:
        raise ValueError(f"pass@{k} of {n} samples, {c} correct, is undefined; it needs k <= n and c <= n")
    if k > n - c:
        return 1.0
    return float(1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1)))


def majority_at_k(answers: Sequence[str | None], correct: Sequence[bool]) -> float:
    """The chance that the most frequent answer is correct; tied answers are equally likely to be chosen.

    majority_at_k(["7", "7", "8"], [True, True, False]) -> 1.0; with ["7", "8"], [True, False] -> 0.5.
    None casts no vote, and without any vote the majority is wrong. Should a grader disagree with itself
    about one answer, that answer counts by its share of correct verdicts.
    """
    votes = Counter(answer for answer in answers if answer is not None)
    if not votes:
        return 0.0
    most_votes = max(votes.values())
    approved = Counter(answer for answer, right in zip(answers, correct, strict=True) if right)
    return fmean(approved[answer] / most_votes for answer, count in votes.items() if count == most_votes)
