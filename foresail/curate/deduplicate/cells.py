"""Which documents are alike: all pairs in blocks, or, of very many documents, the pairs within cells of k-means.

Cells are those of SemDeDup (Abbas et al., 2023): duplicates lie near each other, so nearly all pairs of them are in
one cell. A cell of more than `exact` documents is split again.

Legend: N documents, R those of a cell, B a block of them, L leaders (documents that stay), K cells, D dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from foresail.curate.deduplicate.blocks import Array
from foresail.curate.deduplicate.collected import Collected

BLOCK = 1024
SAMPLED = 20_000  # documents on which cells are found
ROUNDS = 10


def compare_in_cells(
    collected: Collected, first_n: Array, *, threshold: float, exact: int, seed: int, scratch: Path
) -> dict[str, Any]:
    """Write into first_n whom each document repeats."""
    if not collected.documents:
        return {"cells": 0, "largest_cell": 0}
    vectors_ND, order_N = copy_vectors(collected, scratch)
    cells = 0
    largest = 0
    for own_R in split(vectors_ND, np.arange(len(order_N)), exact, np.random.default_rng(seed)):
        leaders_R = find_leaders(vectors_ND, own_R, threshold)
        first_n[order_N[own_R]] = order_N[own_R[leaders_R]]
        cells, largest = cells + 1, max(largest, len(own_R))
    return {"cells": cells, "largest_cell": largest}


def copy_vectors(collected: Collected, scratch: Path) -> tuple[Array, Array]:
    """The vectors in a file, the best documents first, and the numbers of the documents in this order."""
    quality_N = np.concatenate([block["quality"] for _, block in collected.blocks()])
    order_N = np.lexsort((np.arange(len(quality_N)), -quality_N))
    place_N = np.empty(len(order_N), np.int64)
    place_N[order_N] = np.arange(len(order_N))
    vectors_ND: Array | None = None
    for start, block in collected.blocks():
        if vectors_ND is None:
            shape = (len(order_N), block["vectors"].shape[1])
            vectors_ND = np.memmap(scratch / "vectors", np.float32, mode="w+", shape=shape)
        vectors_ND[place_N[start : start + len(block["vectors"])]] = block["vectors"]
    assert vectors_ND is not None
    return vectors_ND, order_N


def split(vectors_ND: Array, own_R: Array, exact: int, generator: np.random.Generator) -> Iterator[Array]:
    """Cells of at most `exact` documents, if they can be split so far; each keeps the order."""
    if len(own_R) <= exact:
        yield own_R
        return
    sample = np.sort(generator.choice(own_R, min(len(own_R), SAMPLED), replace=False))
    means_KD = spherical_means(np.asarray(vectors_ND[sample]), -(-2 * len(own_R) // exact), generator)
    cells_R = np.concatenate(
        [
            nearest(np.asarray(vectors_ND[own_R[at : at + BLOCK]]), means_KD)
            for at in range(0, len(own_R), BLOCK)
        ]
    )
    for cell in range(len(means_KD)):
        members = own_R[cells_R == cell]
        if len(members) == len(own_R):  # all the same: few of them stay, so that comparing takes little
            yield members
        elif len(members):
            yield from split(vectors_ND, members, exact, generator)


def spherical_means(vectors_SD: Array, count: int, generator: np.random.Generator) -> Array:
    """k-means by cosine."""
    means_KD = vectors_SD[generator.choice(len(vectors_SD), min(count, len(vectors_SD)), replace=False)]
    for _ in range(ROUNDS):
        cells_S = nearest(vectors_SD, means_KD)
        sums_KD = np.zeros(means_KD.shape)
        np.add.at(sums_KD, cells_S, vectors_SD)
        lengths_K = np.linalg.norm(sums_KD, axis=1, keepdims=True)
        means_KD = np.where(lengths_K > 0, sums_KD / np.maximum(lengths_K, 1e-12), means_KD).astype(
            np.float32
        )
    return means_KD


def nearest(vectors_BD: Array, means_KD: Array) -> Array:
    numbers: Array = (vectors_BD @ means_KD.T).argmax(axis=1)
    return numbers


def find_leaders(vectors_ND: Array, own_R: Array, threshold: float) -> Array:
    """Of each document of the cell, its own place there, or that of the leader which it is most like."""
    leaders_R = np.arange(len(own_R))
    kept_LD = np.empty((BLOCK, vectors_ND.shape[1]), np.float32)
    places: list[int] = []
    for begin in range(0, len(own_R), BLOCK):
        block_BD = np.asarray(vectors_ND[own_R[begin : begin + BLOCK]])
        nearest_B, similar_B = most_like(block_BD, kept_LD[: len(places)])
        inside_BB = block_BD @ block_BD.T
        fresh: list[int] = []
        for row in range(len(block_BD)):
            leader, similar = (places[nearest_B[row]] if places else -1), similar_B[row]
            if fresh:
                like = inside_BB[row, fresh]
                best = int(like.argmax())
                if like[best] > similar:
                    leader, similar = begin + fresh[best], like[best]
            if similar >= threshold:
                leaders_R[begin + row] = leader
            else:
                fresh.append(row)
        while len(places) + len(fresh) > len(kept_LD):
            kept_LD = np.concatenate([kept_LD, np.empty_like(kept_LD)])
        kept_LD[len(places) : len(places) + len(fresh)] = block_BD[fresh]
        places += [begin + row for row in fresh]
    return leaders_R


def most_like(block_BD: Array, kept_LD: Array) -> tuple[Array, Array]:
    """Of each row the leader with the greatest cosine, the first of equal ones, and this cosine."""
    best_B = np.zeros(len(block_BD), np.int64)
    similar_B = np.full(len(block_BD), -np.inf, np.float32)
    for begin in range(0, len(kept_LD), 16 * BLOCK):
        products = block_BD @ kept_LD[begin : begin + 16 * BLOCK].T
        nearest = products.argmax(axis=1)
        values = products[np.arange(len(products)), nearest]
        better = values > similar_B
        best_B[better], similar_B[better] = begin + nearest[better], values[better]
    return best_B, similar_B
