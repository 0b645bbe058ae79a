"""Rows of benchmarks that hold a text of a few words, shorter than an n-gram, as a whole.

A prompt of twelve words has no n-gram of thirteen, and may yet be the first sentence of a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from foresail.curate.decontaminate.folding import Array
from foresail.curate.decontaminate.grams import beginning_key
from foresail.curate.decontaminate.tokens import Tokens

BYTES = 8  # of a hash
BREAK = bytes(BYTES)  # between the texts of a row


@dataclass(frozen=True)
class Holders:
    """For texts with a weight from `least` up to `below`; `hashes_r`: of the tokens of each row, as bytes.

    `rows_g`, from `starts_g` on: the rows that have the n-gram `keys_g`, which has the weight `least`.
    """

    least: int
    below: int
    keys_g: Array
    starts_g: Array
    rows_g: Array
    hashes_r: tuple[bytes, ...]

    def of(self, tokens: Tokens) -> Iterator[tuple[int, float]]:
        """Rows, and which part of a row's tokens the text is."""
        weight = int(tokens.weights.sum())
        if not self.least <= weight < self.below or not len(self.keys_g):
            return
        key = np.uint64(beginning_key(tokens, self.least))
        place = int(np.searchsorted(self.keys_g, key))
        if place == len(self.keys_g) or self.keys_g[place] != key:
            return
        text = tokens.hashes.tobytes()
        for row in self.rows_g[self.starts_g[place] : self.starts_g[place + 1]].tolist():
            if holds(self.hashes_r[row], text):
                yield row, min(1.0, len(text) / len(self.hashes_r[row]))


def holds(hashes: bytes, part: bytes) -> bool:
    """bytes.find, at the beginning of a hash only."""
    place = hashes.find(part)
    while place % BYTES and place >= 0:
        place = hashes.find(part, place + 1)
    return place >= 0
