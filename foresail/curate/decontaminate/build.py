"""Makes the index of benchmark files.

An n-gram that more than MOST_ROWS rows of one file have is their common wording, and no leak of any of them; texts
that are the same count once. Rows that are shorter than an n-gram, or have none but common wording, are looked for
whole if they have at least `least` words; still shorter ones leak where a text consists of nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np

from foresail.curate.decontaminate.folding import Array
from foresail.curate.decontaminate.grams import Grams, Table, grams_of, whole_key
from foresail.curate.decontaminate.holders import BREAK, Holders
from foresail.curate.decontaminate.index import Index
from foresail.curate.decontaminate.tokens import Masks, TokenReader, Tokens
from foresail.curate.decontaminate.whole import Parts, Whole, as_whole, whole_texts

MOST_ROWS = 10  # of one file, with one n-gram
FEWEST_WORDS = 2  # of a row


class RowTexts(NamedTuple):
    """Of a row of file number `file`: texts that are looked for each by itself, and parts that are together."""

    file: int
    texts: tuple[str, ...]
    parts: tuple[str, ...] = ()


@dataclass
class Postings:
    """N-grams: key, row, file, and the text that has it; the same text in several rows has one number."""

    keys: list[Array] = field(default_factory=list)
    rows: list[Array] = field(default_factory=list)
    files: list[Array] = field(default_factory=list)
    texts: list[Array] = field(default_factory=list)

    def add(self, keys: Array, row: int, file: int, text: int) -> None:
        self.keys.append(keys)
        for values, value in ((self.rows, row), (self.files, file), (self.texts, text)):
            values.append(np.full(len(keys), value, np.int64))


def build_index(rows: Sequence[RowTexts], grams: Grams, masks: Masks) -> Index:
    """With masks for n-grams alone: a few words without names and pronouns say too little."""
    builder = Builder(grams, masks)
    for number, row in enumerate(rows):
        builder.add(number, row)
    return builder.index(len(rows))


class Builder:
    """Takes one row after the other."""

    def __init__(self, grams: Grams, masks: Masks) -> None:
        self.grams, self.masks = grams, masks
        self.reader = TokenReader(grams.weights, masks)
        self.long, self.small = Postings(), Postings()  # n-grams, and those of the weight of a short row
        self.short: list[Whole] = []
        self.spare: list[Whole] = []  # looked for if the row has no n-gram but common wording
        self.alone: dict[int, list[int]] = defaultdict(list)
        self.anchors: list[Whole] = []
        self.parts: dict[int, Parts] = {}
        self.hashes_r: list[bytes] = []
        self.numbers: dict[str, int] = {}

    def add(self, number: int, row: RowTexts) -> None:
        hashes: list[bytes] = []
        for text in row.texts:
            same = self.numbers.setdefault(text, len(self.numbers))
            for tokens in self.reader.read(text):
                grams = grams_of(tokens, self.grams.target)
                self.long.add(grams, number, row.file, same)
                if not self.masks.names:
                    self.small.add(grams_of(tokens, self.grams.shortest), number, row.file, same)
                    hashes.append(tokens.hashes.tobytes())
                    self.add_whole(tokens, number, len(grams) > 0)
        self.hashes_r.append(BREAK.join(hashes))
        if not self.masks.names and (entry := anchor_of(row.parts, number, self.reader, self.grams)):
            self.anchors.append(entry[0])
            self.parts[number] = entry[1]

    def add_whole(self, tokens: Tokens, number: int, has_grams: bool) -> None:
        weight = int(tokens.weights.sum())
        if weight < self.grams.shortest:
            if len(tokens.hashes) >= FEWEST_WORDS:
                self.alone[whole_key(tokens)].append(number)
        elif weight < self.grams.target:
            self.short.append(as_whole(tokens, number, self.grams.shortest))
        elif has_grams:
            self.spare.append(as_whole(tokens, number, self.grams.shortest))

    def index(self, rows: int) -> Index:
        keys_g, starts_g, rows_g = rare(self.long)
        grams_r = np.bincount(rows_g, minlength=rows)
        short = self.short + [whole for whole in self.spare if not grams_r[whole.row]]
        searched = (
            {whole.row for whole in short} | {*chain.from_iterable(self.alone.values())} | {*self.parts}
        )
        return Index(
            grams=self.grams,
            masks=self.masks,
            table=Table(keys_g),
            rows_g=rows_g,
            starts_g=starts_g,
            grams_r=grams_r,
            short=whole_texts(short, self.grams.shortest),
            anchors=whole_texts(self.anchors, self.grams.anchor),
            parts=self.parts,
            alone=dict(self.alone),
            holders=Holders(self.grams.shortest, self.grams.target, *rare(self.small), tuple(self.hashes_r)),
            unsearched=tuple(row for row in range(rows) if not grams_r[row] and row not in searched),
        )


def anchor_of(
    texts: Iterable[str], row: int, reader: TokenReader, grams: Grams
) -> tuple[Whole, Parts] | None:
    """The longest part and all of them, if those of two words or more have the weight of a short row together."""
    parts: dict[bytes, tuple[int, Whole | None]] = {}
    together = 0
    for text in texts:
        tokens = next(reader.read(text))
        weight = int(tokens.weights.sum())
        if (key := tokens.hashes.tobytes()) and key not in parts:
            parts[key] = weight, as_whole(tokens, row, grams.anchor) if weight >= grams.anchor else None
            together += weight if len(tokens.hashes) >= FEWEST_WORDS else 0
    if len(parts) < 2 or together < grams.shortest:
        return None
    _, anchor = max(parts.values(), key=lambda part: part[0])
    return (anchor, Parts(tuple(sorted(parts, key=len, reverse=True)))) if anchor else None


def rare(postings: Postings) -> tuple[Array, Array, Array]:
    """Keys, each once; where the rows of each begin; these rows. Without common wording."""
    keys, rows = join(postings.keys, np.uint64), join(postings.rows)
    files, texts = join(postings.files), join(postings.texts)
    order = np.lexsort((texts, files, keys))
    keys, rows, files, texts = keys[order], rows[order], files[order], texts[order]
    if len(keys):
        new_key = changes(keys) | changes(files)
        group = np.cumsum(new_key) - 1
        different_texts = np.bincount(group, weights=new_key | changes(texts))
        keep = different_texts[group] <= MOST_ROWS
        keys, rows = keys[keep], rows[keep]
        order = np.lexsort((rows, keys))
        keys, rows = keys[order], rows[order]
        once = changes(keys) | changes(rows)
        keys, rows = keys[once], rows[once]
    different, starts = np.unique(keys, return_index=True)
    return different, np.append(starts, len(keys)), rows


def changes(values: Array) -> Array:
    """changes([3, 3, 5]) -> [True, False, True]."""
    return np.append(np.ones(min(1, len(values)), bool), values[1:] != values[:-1])


def join(parts: Sequence[Array], kind: type = np.int64) -> Array:
    return np.concatenate(parts) if parts else np.zeros(0, kind)
