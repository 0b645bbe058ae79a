"""Compiled loops of the language model: features of a text, its scores, and training."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

Array = np.ndarray
compiled: Any = numba.njit(cache=True, nogil=True)

PRIME = np.uint64(0x9E3779B97F4A7C15)
MIX = np.uint64(0xBF58476D1CE4E5B9)
WORD = np.uint64(0x5BD1E995)  # keeps words apart from n-grams of the same letters
ONE, STEP = np.uint64(1), np.uint64(31)
SPACE = np.uint64(32)
LONGEST_GRAM = 5
LONGEST_WORD = 24  # a longer run of letters is a sentence without spaces (Thai, Chinese) or noise
FEATURES_PER_LETTER = LONGEST_GRAM + 1


@compiled
def script_of(point: int, scripts: Array) -> int:
    """The script of a code point: a number of `features.py`; 0: no letter."""
    if point < 0x10000:
        return int(scripts[point])
    if 0x20000 <= point < 0x33480:
        return 4
    return 1 if point < 0x1D000 else 0


@compiled
def main_script(codes: Array, scripts: Array, weights: Array) -> int:
    """The script most of a text is in, each letter by the weight of its script."""
    counts = np.zeros(len(weights), np.int64)
    for code in codes:
        counts[script_of(code, scripts)] += 1
    best = 1
    for script in range(1, len(weights)):
        if counts[script] * weights[script] > counts[best] * weights[best]:
            best = script
    return best


@compiled
def features(codes: Array, scripts: Array, script: int, bits: int, buckets: Array) -> int:
    """Fills `buckets`, which holds FEATURES_PER_LETTER × (len(codes) + 2) numbers; returns how many there are."""
    shift = np.uint64(64 - bits)
    window = np.zeros(LONGEST_GRAM, np.uint64)
    held = 0  # letters in the window
    word, word_length = np.uint64(0), 0
    count = 0
    after_space = False
    for place in range(-1, len(codes) + 1):
        code = SPACE
        if 0 <= place < len(codes) and script_of(codes[place], scripts) == script:
            code = np.uint64(codes[place])
        if code == SPACE:
            if after_space:
                continue
            if 1 < word_length <= LONGEST_WORD:
                key = (word ^ WORD) * MIX
                buckets[count] = (key ^ (key >> STEP)) * PRIME >> shift
                count += 1
            word, word_length, after_space = np.uint64(0), 0, True
        else:
            word = (word + code + ONE) * PRIME
            word ^= word >> STEP
            word_length += 1
            after_space = False
        for k in range(LONGEST_GRAM - 1):
            window[k] = window[k + 1]
        window[LONGEST_GRAM - 1] = code
        held = min(held + 1, LONGEST_GRAM)
        key = np.uint64(0)
        for length in range(1, held + 1):
            key = (key + window[LONGEST_GRAM - length] + ONE) * MIX
            key ^= key >> STEP
            if length > 1 or code != SPACE:
                buckets[count] = key * PRIME >> shift
                count += 1
    return count


@compiled
def add_scores(buckets: Array, weights: Array, totals: Array) -> None:
    """Adds the weights of each bucket to `totals`, by class."""
    for bucket in buckets:
        for k in range(totals.shape[0]):
            totals[k] += weights[bucket, k]


@compiled
def probabilities(logits: Array) -> None:
    """In place."""
    peak = logits.max()
    total = 0.0
    for k in range(logits.shape[0]):
        logits[k] = np.exp(logits[k] - peak)
        total += logits[k]
    for k in range(logits.shape[0]):
        logits[k] /= total


@compiled
def train_pass(
    codes: Array,
    starts: Array,
    labels: Array,
    order: Array,
    scripts: Array,
    script_weights: Array,
    weights: Array,
    bias: Array,
    first_rate: float,
    last_rate: float,
) -> float:
    """Stochastic gradient descent over the texts in `order`; the rate falls linearly. The mean loss."""
    bits = 0
    while 1 << bits < weights.shape[0]:
        bits += 1
    longest = 0
    for n in range(len(starts) - 1):
        longest = max(longest, starts[n + 1] - starts[n])
    buckets = np.empty(FEATURES_PER_LETTER * (longest + 2), np.uint32)
    logits = np.empty(bias.shape[0], np.float32)
    loss = 0.0
    for step in range(len(order)):
        n = order[step]
        rate = first_rate + (last_rate - first_rate) * step / len(order)
        text = codes[starts[n] : starts[n + 1]]
        count = features(text, scripts, main_script(text, scripts, script_weights), bits, buckets)
        if count == 0:
            continue
        logits[:] = 0
        add_scores(buckets[:count], weights, logits)
        scale = 1 / np.sqrt(count)
        logits *= np.float32(scale)
        logits += bias
        probabilities(logits)
        loss -= np.log(max(logits[labels[n]], 1e-30))
        logits[labels[n]] -= 1
        logits *= np.float32(rate)
        bias -= np.float32(0.01) * logits
        logits *= np.float32(scale)
        for bucket in buckets[:count]:
            for k in range(logits.shape[0]):
                weights[bucket, k] -= logits[k]
    return loss / len(order)
