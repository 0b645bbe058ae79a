"""The linear models inside the scorer of main content, trained by AdaGrad: weights of hashed words.

fit_blocks(buckets, places, targets, weights, size=1 << 14, by_root=False) -> one weight a bucket
fit_types([(buckets, "forum"), …]) -> weights [type, bucket] and a bias a type
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from numba import njit

from foresail.curate.extract.content.features import PAGE_BITS
from foresail.curate.extract.content.model import PAGE_TYPES
from foresail.curate.extract.content.scan import Array

RATE = 0.1


def fit_blocks(
    buckets: Array, places: Array, targets: Array, weights: Array, *, size: int, by_root: bool
) -> Array:
    """Logistic regression on shares. by_root: a sum is divided by the root of how many words it has."""
    found = np.zeros(size)
    descend(buckets, places, targets, weights / weights.mean(), found, np.zeros(size), by_root, 3, RATE, 1e-4)
    return found.astype(np.float32)


@njit(cache=True)
def descend(
    buckets: Array, places: Array, targets: Array, weights: Array, found: Array, squares: Array,
    by_root: bool, epochs: int, rate: float, decay: float,
) -> None:  # fmt: skip
    np.random.seed(0)
    bias, bias_squares = 0.0, 1.0
    for _ in range(epochs):
        for row in np.random.permutation(len(targets)):
            if weights[row] <= 0:
                continue
            start, stop = places[row], places[row + 1]
            scale = 1 / np.sqrt(max(stop - start, 1)) if by_root else 1.0
            score = bias
            for at in range(start, stop):
                score += found[buckets[at]] * scale
            slope = (1 / (1 + np.exp(-score)) - targets[row]) * weights[row]
            for at in range(start, stop):
                bucket = buckets[at]
                gradient = slope * scale + decay * found[bucket] * weights[row]
                squares[bucket] += gradient * gradient
                found[bucket] -= rate * gradient / np.sqrt(squares[bucket] + 1e-4)
            bias_squares += slope * slope
            bias -= rate * slope / np.sqrt(bias_squares)


def fit_types(
    pages: list[tuple[Array, str]], *, epochs: int = 30, decay: float = 1e-3
) -> tuple[Array, Array]:
    types = len(PAGE_TYPES)
    found, bias = np.zeros((types, 1 << PAGE_BITS)), np.zeros(types)
    squares, bias_squares = np.full_like(found, 1e-4), np.ones(types)
    often = Counter(name for _, name in pages)
    chance = np.random.default_rng(0)
    for _ in range(epochs):
        for number in chance.permutation(len(pages)):
            buckets, name = pages[number]
            slope = softmax(found[:, buckets].sum(1) + bias)
            slope[PAGE_TYPES.index(name)] -= 1
            slope *= (often["article"] / often[name]) ** 0.2
            gradient = slope[:, None] + decay * found[:, buckets]
            squares[:, buckets] += gradient * gradient
            found[:, buckets] -= RATE * gradient / np.sqrt(squares[:, buckets])
            bias_squares += slope * slope
            bias -= RATE * slope / np.sqrt(bias_squares)
    return found.astype(np.float32), bias.astype(np.float32)


def softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max())
    return np.asarray(powers / powers.sum())
