"""Texts that are looked for whole: short rows, and the longest parts of rows that have several.

A row of several parts, as a question and its choices, leaks where all of them stand near each other, in any order
and with anything between them:

    "Which of these animals is a mammal?", "a shark", "a bat"
        in 'Q: Which of these animals is a mammal?  (A) A bat  (B) A shark'
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from foresail.curate.decontaminate.folding import Array
from foresail.curate.decontaminate.gram_kernel import find_rows
from foresail.curate.decontaminate.grams import Table, beginning_key, whole_key
from foresail.curate.decontaminate.holders import BYTES, holds
from foresail.curate.decontaminate.tokens import Tokens

MOST_HITS = 1 << 14  # of one stretch of a text
SPREAD, APART = 2, 100  # parts are near: within so many times their tokens, and so many more


class Whole(NamedTuple):
    """Key of the beginning, row, tokens, key of all."""

    beginning: int
    row: int
    size: int
    key: int


def as_whole(tokens: Tokens, row: int, target: int) -> Whole:
    return Whole(beginning_key(tokens, target), row, len(tokens.hashes), whole_key(tokens))


@dataclass(frozen=True)
class WholeTexts:
    """`target`: the weight of beginnings. Those with beginning g are from `starts_g` up to the next."""

    target: int
    table: Table
    starts_g: Array
    rows: Array
    sizes: Array
    keys: Array

    def hits(self, tokens: Tokens, powers: Array) -> list[list[int]]:
        """Row, first token, the one behind the last."""
        if not len(self.rows):
            return []
        first_hits, places = np.empty((MOST_HITS, 3), np.int64), np.empty((MOST_HITS, 3), np.int64)
        count = find_rows(
            tokens.hashes,
            tokens.weights,
            len(tokens.hashes),
            self.target,
            powers,
            *self.table.arrays,
            self.starts_g,
            self.sizes,
            self.keys,
            first_hits,
            places,
        )
        hits: list[list[int]] = places[:count].tolist()
        return [[int(self.rows[number]), start, end] for number, start, end in hits]


def whole_texts(entries: Iterable[Whole], target: int) -> WholeTexts:
    ordered = sorted({*entries})
    beginnings = np.array([entry.beginning for entry in ordered], np.uint64)
    different, starts = np.unique(beginnings, return_index=True)
    return WholeTexts(
        target=target,
        table=Table(different),
        starts_g=np.append(starts, len(ordered)),
        rows=np.array([entry.row for entry in ordered], np.int64),
        sizes=np.array([entry.size for entry in ordered], np.int64),
        keys=np.array([entry.key for entry in ordered], np.uint64),
    )


@dataclass(frozen=True)
class Parts:
    """Hashes of the tokens of each part, as bytes."""

    parts: tuple[bytes, ...]

    def stand_near(self, tokens: Tokens, start: int, end: int) -> bool:
        """Whether all of them are around tokens start up to end."""
        size = sum(map(len, self.parts)) // BYTES * SPREAD + APART
        around = tokens.hashes[max(0, start - size) : end + size].tobytes()
        return all(holds(around, part) for part in self.parts)
