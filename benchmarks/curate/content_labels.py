"""Which blocks of a page its gold text holds: the share of each block's words.

label_blocks([["home"], ["a", "long", "story"]], "A long story") -> shares [0, 1]

The words of the page and those of the gold are aligned in order; a word matched right after another match counts
twice, so that runs win over scattered words. A block that is left over counts if the gold has it somewhere else.
"""

from __future__ import annotations

import re

import numpy as np
from numba import njit

from foresail.curate.extract.content.scan import Array

WORD = re.compile(r"\w+")
MOST_CELLS = 1_500_000_000  # of the alignment: a byte each
MATCH, ABOVE, BEFORE, CONTINUES = 1, 2, 3, 4


@njit(cache=True)
def align(page: Array, gold: Array) -> Array:
    """Of every word of the page: its place in the gold, or -1."""
    rows, columns = len(page), len(gold)
    moves = np.zeros((rows + 1, columns + 1), np.uint8)
    best = np.zeros(columns + 1, np.float32)
    ending = np.full(columns + 1, -1e9, np.float32)  # best that ends with a match
    for row in range(1, rows + 1):
        corner_ending, corner_best = ending[0], best[0]
        for column in range(1, columns + 1):
            above_ending, above_best = ending[column], best[column]
            move, value = 0, np.float32(-1e9)
            if page[row - 1] == gold[column - 1]:
                value = corner_best + 1
                if corner_ending + 2 >= value:
                    value, move = corner_ending + 2, CONTINUES
            way, most = ABOVE, above_best
            if best[column - 1] > most:
                way, most = BEFORE, best[column - 1]
            if value >= most:
                way, most = MATCH, value
            moves[row, column] = move | way
            corner_ending, corner_best = above_ending, above_best
            ending[column], best[column] = value, most
    places = np.full(rows, -1, np.int32)
    row, column, matched = rows, columns, False
    while row > 0 and column > 0:
        move = moves[row, column]
        if matched or move & 3 == MATCH:
            places[row - 1] = column - 1
            matched = move & CONTINUES != 0
            row, column = row - 1, column - 1
        elif move & 3 == ABOVE:
            row -= 1
        else:
            column -= 1
    return places


def label_blocks(blocks: list[list[str]], gold: str) -> Array | None:
    """Words in lower case. None: too long to align."""
    numbers: dict[str, int] = {}
    wanted = np.array(
        [numbers.setdefault(word, len(numbers)) for word in WORD.findall(gold.lower())], np.int32
    )
    words = np.array([numbers.setdefault(word, len(numbers)) for block in blocks for word in block], np.int32)
    counts = np.array([len(block) for block in blocks])
    if not len(words) or not len(wanted):
        return np.zeros(len(blocks), np.float32)
    if len(words) * len(wanted) > MOST_CELLS:
        return None
    places = align(words, wanted)
    owners = np.repeat(np.arange(len(blocks)), counts)
    shares = np.bincount(owners[places >= 0], minlength=len(blocks)) / np.maximum(counts, 1)
    free = np.ones(len(wanted), np.bool_)
    free[places[places >= 0]] = False
    find_elsewhere(shares, words, np.concatenate([[0], np.cumsum(counts)]), wanted, free)
    return shares.astype(np.float32)


def find_elsewhere(shares: Array, words: Array, starts: Array, wanted: Array, free: Array) -> None:
    """Sets to 1 the blocks that stand whole in what is left of the gold; each piece counts once."""
    occurrences: dict[int, list[int]] = {}
    for place in np.flatnonzero(free).tolist():
        occurrences.setdefault(int(wanted[place]), []).append(place)
    for block in np.flatnonzero((shares < 0.5) & (np.diff(starts) > 0)).tolist():
        piece = words[starts[block] : starts[block + 1]]
        for place in occurrences.get(int(piece[0]), ()):
            end = place + len(piece)
            if end <= len(wanted) and free[place:end].all() and (wanted[place:end] == piece).all():
                shares[block] = 1.0
                free[place:end] = False
                break
