"""The n-grams of benchmark files, and the rows of them that a text leaks.

index = build_index(rows, Grams(n=13, n_characters=20), Masks())
index.find("…, she sells the remainder at the farmers' market daily for $2 per fresh duck egg. …")
    -> [Match(row=0, share=.36, text="she sells the remainder …")]
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from foresail.curate.decontaminate.folding import Array
from foresail.curate.decontaminate.gram_kernel import MOST_TOKENS, find_grams, powers_of_base
from foresail.curate.decontaminate.grams import Grams, Table, whole_key
from foresail.curate.decontaminate.holders import Holders
from foresail.curate.decontaminate.tokens import Masks, TokenReader, Tokens
from foresail.curate.decontaminate.whole import MOST_HITS, Parts, WholeTexts

SHORT_TEXT = 2000  # characters of a text that may be a very short row and nothing else


class Match(NamedTuple):
    """`share`: of the row's n-grams; `text`: as it stands in the document."""

    row: int
    share: float
    text: str


@dataclass(frozen=True)
class Index:
    """`rows_g`, from `starts_g` on: the rows that have n-gram g; `grams_r`: different n-grams of each row.

    `short` are rows that are looked for within a text as a whole, `anchors` the longest of the `parts` of a row.
    `alone` are very short ones, by their key: they leak where a text is nothing else. `holders` finds rows that
    hold a whole text. `unsearched`: rows that are in none of these.
    """

    grams: Grams
    masks: Masks
    table: Table
    rows_g: Array
    starts_g: Array
    grams_r: Array
    short: WholeTexts
    anchors: WholeTexts
    parts: dict[int, Parts]
    alone: dict[int, list[int]]
    holders: Holders
    unsearched: tuple[int, ...]

    @cached_property
    def powers(self) -> Array:
        powers = np.zeros(MOST_TOKENS, np.uint64)
        powers_of_base(powers)
        return powers

    @cached_property
    def reader(self) -> TokenReader:
        return TokenReader(self.grams.weights, self.masks)

    @cached_property
    def places(self) -> Array:
        return np.empty((MOST_HITS, 3), np.int64)

    def find(self, text: str) -> list[Match]:
        """The rows of which the text has an n-gram, the one with the largest share first."""
        grams: dict[int, set[int]] = defaultdict(set)
        texts: dict[int, str] = {}
        shares: dict[int, float] = {}
        for tokens in self.reader.read(text):
            for number, start, end in self.hits(tokens):
                for row in self.rows_g[self.starts_g[number] : self.starts_g[number + 1]].tolist():
                    grams[row].add(number)
                    texts.setdefault(row, tokens.excerpt(start, end))
            anchored = (
                (row, start, end)
                for row, start, end in self.anchors.hits(tokens, self.powers)
                if self.parts[row].stand_near(tokens, start, end)
            )
            for row, start, end in (*self.short.hits(tokens, self.powers), *anchored):
                shares[row] = 1.0
                texts.setdefault(row, tokens.excerpt(start, end))
        for row, numbers in grams.items():
            shares[row] = max(shares.get(row, 0.0), len(numbers) / int(self.grams_r[row]))
        return sorted(
            (Match(row, share, texts[row]) for row, share in shares.items()),
            key=lambda match: (-match.share, match.row),
        )

    def find_alone(self, text: str) -> list[Match]:
        """Rows of a few words that are all of a text, and rows that hold all of a text of a few words."""
        if len(text) > SHORT_TEXT:
            return []
        tokens = next(self.reader.read(text))
        matches = [Match(row, 1.0, text.strip()) for row in self.alone.get(whole_key(tokens), ())]
        return matches + [Match(row, share, text.strip()) for row, share in self.holders.of(tokens)]

    def hits(self, tokens: Tokens) -> list[list[int]]:
        count = find_grams(
            tokens.hashes,
            tokens.weights,
            len(tokens.hashes),
            self.grams.target,
            self.powers,
            *self.table.arrays,
            self.places,
        )
        hits: list[list[int]] = self.places[:count].tolist()
        return hits
