"""Clusters of embeddings: PCA, then DBSCAN on as many rows as it may see; others join the nearest core row.

Legend: N rows, S those that DBSCAN sees, C components.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from foresail.curate.deduplicate.blocks import Array
from foresail.curate.deduplicate.collected import Collected
from foresail.curate.select.density import by_size, dbscan, distances_to_neighbours, nearest_label
from foresail.curate.select.projection import project

if TYPE_CHECKING:
    from foresail.curate.select.diverse import SelectDiverse

MEASURED = 2000  # rows whose neighbours are looked for to choose eps
QUANTILE = 0.5  # of the distances to the last of so many neighbours


@dataclass(frozen=True, eq=False)
class Clusters:
    """Labels from 0, the largest cluster first; -1 is noise."""

    points_NC: Array
    labels_N: Array
    eps: float
    variance: float


def cluster_rows(settings: SelectDiverse, collected: Collected, draws_N: Array) -> Clusters:
    def vectors() -> Iterator[Array]:
        for _, block in collected.blocks():
            yield block["vectors"]

    points_NC, variance = project(vectors, settings.components)
    drawn_N = np.argsort(draws_N, kind="stable")
    seen_S = np.sort(drawn_N[: settings.clustered])
    points_SC = points_NC[seen_S]
    measured = np.searchsorted(seen_S, np.sort(drawn_N[: min(settings.clustered, MEASURED)]))
    eps = settings.eps or choose_eps(points_SC, measured, settings.neighbours)
    labels_S, is_core_S = dbscan(points_SC, eps, settings.neighbours)
    labels_N = np.full(len(points_NC), -1)
    labels_N[seen_S] = labels_S
    others = np.setdiff1d(np.arange(len(points_NC)), seen_S, assume_unique=True)
    labels_N[others] = nearest_label(points_NC[others], points_SC[is_core_S], labels_S[is_core_S], eps)
    if len(others):
        clustered = labels_N >= 0
        labels_N[clustered] = by_size(labels_N[clustered])
    return Clusters(points_NC, labels_N, eps, variance)


def choose_eps(points_SC: Array, measured: Array, neighbours: int) -> float:
    """The median distance to the last of a row's nearest `neighbours`: about half of the rows become core rows.

    The knee of these distances lies far higher, where most rows are one cluster.
    """
    if not len(points_SC):
        return 1.0
    distances = distances_to_neighbours(points_SC, measured, neighbours)
    # a little more, so that rounding does not decide about rows at just this distance
    return float(np.quantile(distances, QUANTILE)) * 1.001 + 1e-3
