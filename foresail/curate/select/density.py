"""DBSCAN, in blocks: memory grows with the rows, not with their pairs.

    density, is_core_N = dbscan(points_NC, eps=0.4, neighbours=8)     # density.labels_N is -1 for noise

A row with at least `neighbours` rows within eps, itself included, is a core row. Core rows within eps of each other
are of one cluster. Another row within eps of a core row is of the nearest one's cluster, whatever the order of rows
(scikit-learn: of the cluster that comes first). All others are noise. Clusters have numbers by size, the largest 0.

Legend: N rows, M core rows, B rows at once, C coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from foresail.curate.deduplicate.blocks import Array

PAIRS_AT_ONCE = 1 << 24


@dataclass(frozen=True, eq=False)
class Density:
    """Of each row its label, -1 for noise; how many are within eps; how far the nearest core row is."""

    labels_N: Array
    counts_N: Array
    distances_N: Array

    def of(self, rows: Array) -> Density:
        return Density(self.labels_N[rows], self.counts_N[rows], self.distances_N[rows])


def dbscan(points_NC: Array, eps: float, neighbours: int) -> tuple[Density, Array]:
    """The second is which are core rows."""
    counts_N = count_near(points_NC, points_NC, eps)
    is_core_N = counts_N >= neighbours
    cores_MC = points_NC[is_core_N]
    first_M = np.arange(len(cores_MC))
    for _, squares in square_distances(cores_MC, cores_MC):
        join_rows(squares <= eps * eps, first_M)
    labels_N = np.empty(len(points_NC), np.int64)
    distances_N = np.zeros(len(points_NC))
    labels_N[is_core_N] = first_M
    labels_N[~is_core_N], distances_N[~is_core_N] = nearest_core(
        points_NC[~is_core_N], cores_MC, first_M, eps
    )
    labels_N[labels_N >= 0] = by_size(labels_N[labels_N >= 0])
    return Density(labels_N, counts_N, distances_N), is_core_N


def count_near(points_NC: Array, others_MC: Array, eps: float) -> Array:
    counts_N = np.zeros(len(points_NC), np.int64)
    for begin, squares in square_distances(points_NC, others_MC):
        counts_N[begin : begin + len(squares)] = np.count_nonzero(squares <= eps * eps, axis=1)
    return np.maximum(counts_N, 1)


def join_rows(is_near_BM: Array, first_M: Array) -> None:
    """Whoever is near to one row is of one cluster; first_M is the smallest number in each row's cluster."""
    for is_near_M in is_near_BM:
        firsts = first_M[is_near_M]  # the row itself is one of them
        front = firsts.min(initial=len(first_M))
        if len(others := np.unique(firsts[firsts != front])):
            first_M[np.isin(first_M, others)] = front


def by_size(first_M: Array) -> Array:
    """by_size([4, 7, 7]) -> [1, 0, 0]: numbers of clusters, the largest 0; of equal ones, the smallest label."""
    _, own_M, sizes = np.unique(first_M, return_inverse=True, return_counts=True)
    rank = np.empty(len(sizes), np.int64)
    rank[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    numbers: Array = rank[own_M]
    return numbers


def nearest_core(points_NC: Array, cores_MC: Array, labels_M: Array, eps: float) -> tuple[Array, Array]:
    """The label of the nearest core row, -1 where none is within eps; and its distance."""
    labels_N = np.full(len(points_NC), -1)
    distances_N = np.full(len(points_NC), np.inf)
    if not len(cores_MC):
        return labels_N, distances_N
    for begin, squares in square_distances(points_NC, cores_MC):
        rows = slice(begin, begin + len(squares))
        nearest = squares.argmin(axis=1)
        least = squares[np.arange(len(squares)), nearest]
        labels_N[rows] = np.where(least <= eps * eps, labels_M[nearest], -1)
        distances_N[rows] = np.sqrt(np.maximum(least, 0))
    return labels_N, distances_N


def distances_to_neighbours(points_NC: Array, sample: Array, neighbours: int) -> Array:
    """Of each row of the sample, how far the last of its nearest `neighbours` is, itself included; ascending."""
    last = min(neighbours, len(points_NC)) - 1
    squares_of_last = [
        np.partition(squares, last, axis=1)[:, last]
        for _, squares in square_distances(points_NC[sample], points_NC)
    ]
    return (
        np.sort(np.sqrt(np.maximum(np.concatenate(squares_of_last), 0))) if squares_of_last else np.zeros(0)
    )


def square_distances(points_NC: Array, others_MC: Array) -> Iterator[tuple[int, Array]]:
    """Rows of the matrix of squared distances, some at a time, with the number of the first."""
    squares_M = np.einsum("mc,mc->m", others_MC, others_MC)
    step = max(1, PAIRS_AT_ONCE // max(len(others_MC), 1))
    for begin in range(0, len(points_NC), step):
        part = points_NC[begin : begin + step]
        products = part @ others_MC.T
        products *= -2
        products += squares_M
        products += np.einsum("nc,nc->n", part, part)[:, None]
        yield begin, products
