"""How long an n-gram is, and a table of the keys of n-grams."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from foresail.curate.decontaminate.folding import Array
from foresail.curate.decontaminate.gram_kernel import fill_table, gram_key, list_grams
from foresail.curate.decontaminate.tokens import Tokens

ANCHOR_WORDS = 4  # of the longest part of a row


@dataclass(frozen=True)
class Grams:
    """`n` words, or `n_characters` characters of Han and kana, or twice as many of Thai, Lao, Khmer, Myanmar."""

    n: int
    n_characters: int
    least: int = 8

    @cached_property
    def weights(self) -> Array:
        """Of a word or number, a single letter or digit, a Han character, a Thai letter."""
        return np.array([2 * self.n_characters, self.n_characters, 2 * self.n, self.n], np.int32)

    @property
    def target(self) -> int:
        return self.weight_of(self.n)

    @property
    def shortest(self) -> int:
        """Weight of the shortest row that is looked for within a text."""
        return min(self.weight_of(self.least), self.target)

    @property
    def anchor(self) -> int:
        return min(self.weight_of(ANCHOR_WORDS), self.target)

    def weight_of(self, words: int) -> int:
        return 2 * words * self.n_characters


class Table:
    """Keys and their numbers, with a filter of bits before it that mostly fits into a cache."""

    def __init__(self, keys: Array) -> None:
        size = 1 << max(4, int(2 * len(keys) - 1).bit_length())
        self.keys, self.numbers = np.zeros(size, np.uint64), np.zeros(size, np.int64)
        self.filter = np.zeros(size, np.uint8)
        fill_table(keys, self.keys, self.numbers, self.filter)

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        return self.keys, self.numbers, self.filter


def grams_of(tokens: Tokens, target: int) -> Array:
    """The keys of all n-grams that mean something."""
    count = len(tokens.hashes)
    ends, keys = np.empty(count, np.int64), np.empty(count, np.uint64)
    return keys[: list_grams(tokens.hashes, tokens.traits, tokens.weights, count, target, ends, keys)]


def whole_key(tokens: Tokens) -> int:
    return int(gram_key(tokens.hashes, 0, len(tokens.hashes)))


def beginning_key(tokens: Tokens, target: int) -> int:
    """The key of the n-gram at the first token."""
    end = int(np.searchsorted(np.cumsum(tokens.weights), target)) + 1
    return int(gram_key(tokens.hashes, 0, end))
