"""What stands around a token, as a vector: tokens of like use have like vectors.

    vectors_VD, seen_V = context_vectors(documents, vocab_size=32000, width=256)

Neighbours at each of a few places before and behind are counted, as pointwise mutual information where it is
positive, and reduced to `width` by the singular vectors. All of it is numpy, and the same on every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

PLACES = (-2, -1, 1, 2)  # of the neighbours that are counted
NEIGHBOURS = 1024  # of the most frequent tokens
ROWS_AT_ONCE = 4096
SMOOTHING = 0.75  # of the neighbours' frequencies: a rare one says less than its count


def context_vectors(
    documents: Iterable[Sequence[int]], *, vocab_size: int, width: int
) -> tuple[np.ndarray, np.ndarray]:
    """Vectors by id, and how often each was seen; those never seen are zero."""
    texts = [np.asarray(ids, dtype=np.int64) for ids in documents]
    seen_V = np.bincount(np.concatenate([*texts, np.empty(0, np.int64)]), minlength=vocab_size)
    columns = min(NEIGHBOURS, vocab_size)
    frequent = np.argsort(-seen_V, kind="stable")[:columns]
    column_V = np.full(vocab_size, -1)
    column_V[frequent] = np.arange(columns)
    rows, cols, values = count_pairs(texts, column_V, columns)
    values = mutual_information(rows, cols, values, vocab_size, columns * len(PLACES))
    return reduce(rows, cols, values, (vocab_size, columns * len(PLACES)), width), seen_V


def count_pairs(
    texts: Sequence[np.ndarray], column_V: np.ndarray, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Token, neighbour at a place, and how often; sorted by token."""
    wide = columns * len(PLACES)
    keys = [np.empty(0, np.int64)]
    for number, place in enumerate(PLACES):
        for ids in texts:
            here, there = (ids[-place:], ids[:place]) if place < 0 else (ids[:-place], ids[place:])
            column = column_V[there]
            known = column >= 0
            keys.append(here[known] * wide + number * columns + column[known])
    unique, counts = np.unique(np.concatenate(keys), return_counts=True)
    return unique // wide, unique % wide, counts.astype(np.float64)


def mutual_information(
    rows: np.ndarray, cols: np.ndarray, counts: np.ndarray, height: int, wide: int
) -> np.ndarray:
    of_row = np.bincount(rows, counts, minlength=height)
    of_column = np.bincount(cols, counts, minlength=wide) ** SMOOTHING
    share = of_column / max(of_column.sum(), 1e-30)
    expected = of_row[rows] * share[cols]
    return np.maximum(np.log(counts / np.maximum(expected, 1e-30)), 0.0)


def reduce(
    rows: np.ndarray, cols: np.ndarray, values: np.ndarray, size: tuple[int, int], width: int
) -> np.ndarray:
    """Rows of a sparse matrix on its first right singular vectors, each divided by the root of its value."""
    gram = np.zeros((size[1], size[1]))
    for block in dense_blocks(rows, cols, values, size):
        gram += block.T @ block
    eigenvalues, vectors = np.linalg.eigh(gram)
    eigenvalues, vectors = eigenvalues[::-1][:width], vectors[:, ::-1][:, :width]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])])
    scale = np.maximum(eigenvalues, 1e-12) ** -0.25
    parts = [block @ (vectors * scale) for block in dense_blocks(rows, cols, values, size)]
    return np.concatenate(parts).astype(np.float32)


def dense_blocks(
    rows: np.ndarray, cols: np.ndarray, values: np.ndarray, size: tuple[int, int]
) -> Iterable[np.ndarray]:
    for start in range(0, size[0], ROWS_AT_ONCE):
        first, last = np.searchsorted(rows, [start, start + ROWS_AT_ONCE])
        block = np.zeros((min(ROWS_AT_ONCE, size[0] - start), size[1]))
        block[rows[first:last] - start, cols[first:last]] = values[first:last]
        yield block
