"""The n-grams of benchmark files, and the rows of them that a text leaks.

    index = build_index(rows, Grams(n=13, n_characters=20), Masks())
    index.find("…, she sells the remainder at the farmers' market daily for $2 per fresh duck egg. …")
        -> [Match(row=0, share=.36, text="she sells the remainder …")]

An n-gram that more than MOST_ROWS rows of one file have is their common wording, and no leak of any of them. Rows
that are shorter than an n-gram are looked for whole, if they have at least `least` words; still shorter ones leak
where a text consists of nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from foresail.curate.decontaminate.folding import Array
from foresail.curate.decontaminate.tokens import Masks, TokenReader, Tokens

MOST_ROWS = 10  # of one file, with one n-gram
MOST_HITS = 1 << 14  # of one stretch of a text
SHORT_TEXT = 2000  # characters of a text that may be a very short row and nothing else
FEWEST_WORDS = 2  # of such a row
TOP_BIT = 1 << 63


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
        return 2 * self.n * self.n_characters

    @property
    def shortest(self) -> int:
        """Weight of the shortest row that is looked for within a text."""
        return min(2 * self.least * self.n_characters, self.target)


class Match(NamedTuple):
    """`share`: of the row's n-grams; `text`: as it stands in the document."""

    row: int
    share: float
    text: str


class Table:
    """Keys and their numbers, with a filter of bits before it that mostly fits into a cache."""

    def __init__(self, keys: Array) -> None:
        from foresail.curate.decontaminate.kernel import fill_table

        size = 1 << max(4, int(2 * len(keys) - 1).bit_length())
        self.keys, self.numbers = np.zeros(size, np.uint64), np.zeros(size, np.int64)
        self.filter = np.zeros(size, np.uint8)
        fill_table(keys, self.keys, self.numbers, self.filter)

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        return self.keys, self.numbers, self.filter


@dataclass(frozen=True)
class Index:
    """`rows_g`, from `starts_g` on: the rows that have n-gram g; `grams_r`: different n-grams of each row.

    The same with `short_`: rows that are looked for whole, by the n-grams that they begin with.
    """

    grams: Grams
    masks: Masks
    table: Table
    rows_g: Array
    starts_g: Array
    grams_r: Array
    short_table: Table
    short_rows: Array
    short_starts: Array
    short_sizes: Array
    short_keys: Array
    whole: dict[int, list[int]]

    @cached_property
    def powers(self) -> Array:
        from foresail.curate.decontaminate.kernel import MOST_TOKENS, powers_of_base

        powers = np.zeros(MOST_TOKENS, np.uint64)
        powers_of_base(powers)
        return powers

    @cached_property
    def reader(self) -> TokenReader:
        return TokenReader(self.grams.weights, self.masks)

    @cached_property
    def found(self) -> Array:
        return np.empty((MOST_HITS, 3), np.int64)

    @cached_property
    def begun(self) -> Array:
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
            for place, start, end in self.short_hits(tokens):
                row = int(self.short_rows[place])
                shares[row] = 1.0
                texts.setdefault(row, tokens.excerpt(start, end))
        for row, found in grams.items():
            shares[row] = max(shares.get(row, 0.0), len(found) / int(self.grams_r[row]))
        return sorted(
            (Match(row, share, texts[row]) for row, share in shares.items()),
            key=lambda match: (-match.share, match.row),
        )

    def find_whole(self, text: str) -> list[Match]:
        """Rows of a few words that are all of a text."""
        if len(text) > SHORT_TEXT or not self.whole:
            return []
        tokens = self.reader.tokens_of(text)
        return [Match(row, 1.0, text.strip()) for row in self.whole.get(whole_key(tokens), ())]

    def hits(self, tokens: Tokens) -> list[list[int]]:
        from foresail.curate.decontaminate.kernel import find_grams

        count = find_grams(
            tokens.hashes,
            tokens.weights,
            len(tokens.hashes),
            self.grams.target,
            self.powers,
            *self.table.arrays,
            self.found,
        )
        hits: list[list[int]] = self.found[:count].tolist()
        return hits

    def short_hits(self, tokens: Tokens) -> list[list[int]]:
        from foresail.curate.decontaminate.kernel import find_rows

        if not len(self.short_rows):
            return []
        count = find_rows(
            tokens.hashes,
            tokens.weights,
            len(tokens.hashes),
            self.grams.shortest,
            self.powers,
            *self.short_table.arrays,
            self.short_starts,
            self.short_sizes,
            self.short_keys,
            self.begun,
            self.found,
        )
        hits: list[list[int]] = self.found[:count].tolist()
        return hits


def build_index(texts: Sequence[tuple[int, int, str]], rows: int, grams: Grams, masks: Masks) -> Index:
    """`texts`: of which file and which row each is, of `rows` rows in all files."""
    reader = TokenReader(grams.weights, masks)
    keys, owners, files = [], [], []
    short: list[tuple[int, int, int, int]] = []  # beginning, row, size, key
    whole: dict[int, list[int]] = defaultdict(list)
    for file, row, text in texts:
        for tokens in reader.read(text):
            own = grams_of(tokens, grams.target)
            keys.append(own)
            owners.append(np.full(len(own), row, np.int64))
            files.append(np.full(len(own), file, np.int64))
            weight = int(tokens.weights.sum())
            if masks.names or weight >= grams.target:
                continue
            if weight >= grams.shortest:
                short.append((beginning(tokens, grams.shortest), row, len(tokens.hashes), whole_key(tokens)))
            elif len(tokens.hashes) >= FEWEST_WORDS:
                whole[whole_key(tokens)].append(row)
    key_g, starts_g, rows_g = postings(join(keys, np.uint64), join(owners), join(files))
    grams_r = np.bincount(rows_g, minlength=rows)
    short.sort()
    begin_s = np.array([entry[0] for entry in short], np.uint64)
    begins, short_starts = np.unique(begin_s, return_index=True)
    return Index(
        grams=grams,
        masks=masks,
        table=Table(key_g),
        rows_g=rows_g,
        starts_g=starts_g,
        grams_r=grams_r,
        short_table=Table(begins),
        short_rows=np.array([entry[1] for entry in short], np.int64),
        short_starts=np.append(short_starts, len(short)),
        short_sizes=np.array([entry[2] for entry in short], np.int64),
        short_keys=np.array([entry[3] for entry in short], np.uint64),
        whole=dict(whole),
    )


def grams_of(tokens: Tokens, target: int) -> Array:
    from foresail.curate.decontaminate.kernel import list_grams

    count = len(tokens.hashes)
    ends, keys = np.empty(count, np.int64), np.empty(count, np.uint64)
    return keys[: list_grams(tokens.hashes, tokens.traits, tokens.weights, count, target, ends, keys)]


def beginning(tokens: Tokens, target: int) -> int:
    """The key of the n-gram at the first token."""
    from foresail.curate.decontaminate.kernel import gram_key

    end = int(np.searchsorted(np.cumsum(tokens.weights), target)) + 1
    return int(gram_key(tokens.hashes, 0, end))


def whole_key(tokens: Tokens) -> int:
    from foresail.curate.decontaminate.kernel import gram_key

    return int(gram_key(tokens.hashes, 0, len(tokens.hashes)))


def postings(keys: Array, owners: Array, files: Array) -> tuple[Array, Array, Array]:
    """Keys, each once; where the rows of each begin; these rows. Without common wording."""
    order = np.lexsort((owners, files, keys))
    keys, owners, files = keys[order], owners[order], files[order]
    if len(keys):
        new = np.append(True, (keys[1:] != keys[:-1]) | (owners[1:] != owners[:-1]))
        keys, owners, files = keys[new], owners[new], files[new]
        changes = np.append(True, (keys[1:] != keys[:-1]) | (files[1:] != files[:-1]))
        starts = np.flatnonzero(changes)
        sizes = np.diff(np.append(starts, len(keys)))
        rare = np.repeat(sizes <= MOST_ROWS, sizes)
        keys, owners = keys[rare], owners[rare]
    different, starts = np.unique(keys, return_index=True)
    return different, np.append(starts, len(keys)), owners


def join(parts: Sequence[Array], kind: type = np.int64) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, kind)
