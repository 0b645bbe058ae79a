"""Makes the index of benchmark files.

An n-gram that more than MOST_ROWS rows of one file have is their common wording, and no leak of any of them; texts
that are the same count once. Rows that are shorter than an n-gram, or have none but common wording, are looked for
whole if they have at least `least` words; still shorter ones leak where a text consists of nothing else.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from foresail.curate.decontaminate.folding import Array
from foresail.curate.decontaminate.grams import Grams, Table, grams_of, whole_key
from foresail.curate.decontaminate.holders import BREAK, Holders
from foresail.curate.decontaminate.index import Index
from foresail.curate.decontaminate.tokens import Masks, TokenReader
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
    reader = TokenReader(grams.weights, masks)
    postings, small = Postings(), Postings()
    wholes: dict[int, list[tuple[bool, Whole]]] = defaultdict(list)
    anchors: list[Whole] = []
    hashes_r: list[bytes] = []
    parts: dict[int, Parts] = {}
    alone: dict[int, list[int]] = defaultdict(list)
    numbers: dict[str, int] = {}
    for number, row in enumerate(rows):
        hashes: list[bytes] = []
        for text in row.texts:
            same = numbers.setdefault(text, len(numbers))
            for tokens in reader.read(text):
                own = grams_of(tokens, grams.target)
                postings.add(own, number, row.file, same)
                if not masks.names:
                    small.add(grams_of(tokens, grams.shortest), number, row.file, same)
                    hashes.append(tokens.hashes.tobytes())
                weight = int(tokens.weights.sum())
                if weight >= grams.shortest and (weight < grams.target or len(own)):
                    wholes[number].append((weight < grams.target, as_whole(tokens, number, grams.shortest)))
                elif weight < grams.shortest and len(tokens.hashes) >= FEWEST_WORDS and not masks.names:
                    alone[whole_key(tokens)].append(number)
        hashes_r.append(BREAK.join(hashes))
        if not masks.names and (entry := anchor_of(row.parts, number, reader, grams)):
            anchors.append(entry[0])
            parts[number] = entry[1]
    keys_g, starts_g, rows_g = rare(postings)
    grams_r = np.bincount(rows_g, minlength=len(rows))
    short = [
        whole
        for number, entries in wholes.items()
        for is_short, whole in entries
        if (is_short or not grams_r[number]) and not masks.names
    ]
    searched = (
        {whole.row for whole in short} | {number for own in alone.values() for number in own} | {*parts}
    )
    return Index(
        grams=grams,
        masks=masks,
        table=Table(keys_g),
        rows_g=rows_g,
        starts_g=starts_g,
        grams_r=grams_r,
        short=whole_texts(short, grams.shortest),
        anchors=whole_texts(anchors, grams.anchor),
        parts=parts,
        alone=dict(alone),
        holders=Holders(grams.shortest, grams.target, *rare(small), tuple(hashes_r)),
        unsearched=tuple(row for row in range(len(rows)) if not grams_r[row] and row not in searched),
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
