"""From probabilities of blocks to the parts of the tree that stay.

choose([.9, .4, .1], words=[100, 20, 50]) -> [True, True, False]: of all sets the greatest expected F1 of words.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from foresail.curate.extract.content.blocks import Blocks
from foresail.curate.extract.content.scan import WORDS, Array
from foresail.curate.extract.content.tags import NUMBERS

LARGEST_TABLE = 0.6  # of a page's words: a larger table is its layout


def choose(probability: Array, words: Array) -> Array:
    """Blocks from the most likely down, as many as give the greatest 2 · right / (chosen + all that is right)."""
    order = np.argsort(-probability, kind="stable")
    weights = words[order].astype(np.float64) + 1e-6
    expected = weights * probability[order]
    value = np.cumsum(expected) / (np.cumsum(weights) + expected.sum())
    chosen = np.zeros(len(probability), np.bool_)
    chosen[order[: int(np.argmax(value)) + 1]] = True
    return chosen


def even_out_tables(blocks: Blocks, first: Array, stop: Array, probability: Array) -> Array:
    """A table without another one inside is one thing: its blocks get their mean."""
    words = blocks.counts[:, WORDS]
    tables = np.flatnonzero(blocks.tags == NUMBERS["table"])
    if not len(tables):
        return probability
    out, total = probability.copy(), max(float(words.sum()), 1.0)
    for number, table in enumerate(tables):
        begin, end = first[table], stop[table]
        is_outer = number + 1 < len(tables) and tables[number + 1] < blocks.ends[table]
        inside = words[begin:end]
        if end - begin < 2 or is_outer or inside.sum() > LARGEST_TABLE * total:
            continue
        out[begin:end] = np.average(probability[begin:end], weights=inside + 1e-3)
    return out


@njit(cache=True)
def find_dropped(block_of: Array, parents: Array, ends: Array, chosen: Array) -> tuple[int, Array]:
    """The smallest element with all that is chosen, and the outermost nodes in it that hold only other blocks."""
    size = len(parents)
    stays, goes = np.zeros(size + 1, np.int32), np.zeros(size + 1, np.int32)
    for node in range(size):
        block = block_of[node]
        stays[node + 1] = stays[node] + (block >= 0 and chosen[block])
        goes[node + 1] = goes[node] + (block >= 0 and not chosen[block])
    root = 0
    for node in range(size):
        if block_of[node] < 0 and stays[ends[node]] - stays[node] == stays[size] and ends[node] > node + 1:
            root = node
    dropped = np.zeros(size, np.bool_)
    node = root
    while node < ends[root]:
        if stays[ends[node]] == stays[node] and goes[ends[node]] > goes[node]:
            dropped[node] = True
            node = ends[node]
        else:
            node += 1
    return root, np.flatnonzero(dropped)
