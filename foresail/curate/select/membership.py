"""Fuzzy labels: the clusters that a row belongs to, noise included, as fuzzy c-means has them with exponent 2.

A clustered row belongs to its own cluster by half, and by distance to all near ones by the other half. A row of
noise belongs to near clusters by (eps / distance to the nearest core row) ** 2 in all; else it is alone.

Legend: N rows, K clusters, M memberships of a row, C coordinates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.curate.deduplicate.blocks import Array
from foresail.curate.select.density import Density, square_distances

OWN = 0.5


@dataclass(frozen=True, eq=False)
class Memberships:
    """A row's own cluster is in the first column, then the nearest ones. weights_NM and alone_N sum up to 1."""

    clusters_NM: Array
    weights_NM: Array
    alone_N: Array
    count: int

    def sizes(self) -> Array:
        """Rows of each cluster, counted by membership."""
        sizes: Array = np.bincount(self.clusters_NM.ravel(), self.weights_NM.ravel(), self.count)
        return sizes


def fuzzy_labels(points_NC: Array, density: Density, eps: float, memberships: int) -> Memberships:
    """By the inverse square distance to the clusters' means. Without a cluster, all rows are alone."""
    labels_N = density.labels_N
    count = int(labels_N.max(initial=-1)) + 1
    if not count:
        shape = (len(points_NC), 1)
        return Memberships(np.zeros(shape, np.int64), np.zeros(shape), np.ones(len(points_NC)), 1)
    means_KC = means_of(points_NC, labels_N, count)
    columns = min(memberships, count)
    clusters_NM = np.empty((len(points_NC), columns + 1), np.int64)
    weights_NM = np.empty((len(points_NC), columns + 1))
    belonging_N = np.where(labels_N >= 0, 1.0, (eps / np.maximum(density.distances_N, eps)) ** 2)
    for begin, squares in square_distances(points_NC, means_KC):
        rows = slice(begin, begin + len(squares))
        nearest = np.argsort(squares, axis=1, kind="stable")[:, :columns]
        inverse = 1 / np.maximum(np.take_along_axis(squares, nearest, axis=1), 1e-6).astype(np.float64)
        own = labels_N[rows]
        by_distance = np.where(own >= 0, 1 - OWN, belonging_N[rows])
        clusters_NM[rows, 0] = np.where(own >= 0, own, nearest[:, 0])
        clusters_NM[rows, 1:] = nearest
        weights_NM[rows, 0] = np.where(own >= 0, OWN, 0.0)
        weights_NM[rows, 1:] = inverse / inverse.sum(1, keepdims=True) * by_distance[:, None]
    return Memberships(clusters_NM, weights_NM, 1 - belonging_N, count)


def means_of(points_NC: Array, labels_N: Array, count: int) -> Array:
    sums_KC = np.zeros((count, points_NC.shape[1]))
    is_own = labels_N >= 0
    np.add.at(sums_KC, labels_N[is_own], points_NC[is_own].astype(np.float64))
    sizes_K = np.bincount(labels_N[is_own], minlength=count)
    means: Array = (sums_KC / sizes_K[:, None]).astype(np.float32)
    return means
