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
from foresail.curate.select.density import (
    Density,
    by_size,
    count_near,
    dbscan,
    distances_to_neighbours,
    nearest_core,
)
from foresail.curate.select.projection import project

if TYPE_CHECKING:
    from foresail.curate.select.selection_plan import SelectionPlan

MEASURED = 2000  # rows whose neighbours are looked for to choose eps
QUANTILE = 0.5  # of the distances to the last of so many neighbours


@dataclass(frozen=True, eq=False)
class Clusters:
    points_NC: Array
    density: Density
    eps: float
    variance: float


def cluster_rows(settings: SelectionPlan, collected: Collected, draws_N: Array) -> Clusters:
    def vectors() -> Iterator[Array]:
        for _, block in collected.blocks():
            yield block["vectors"]

    points_NC, variance = project(vectors, settings.components)
    drawn_N = np.argsort(draws_N, kind="stable")
    seen_S = np.sort(drawn_N[: settings.clustered])
    points_SC = points_NC[seen_S]
    measured = np.searchsorted(seen_S, np.sort(drawn_N[: min(settings.clustered, MEASURED)]))
    eps = settings.eps or choose_eps(points_SC, measured, settings.neighbours)
    seen, is_core_S = dbscan(points_SC, eps, settings.neighbours)
    if len(seen_S) == len(points_NC):
        return Clusters(points_NC, seen, eps, variance)
    others = np.setdiff1d(np.arange(len(points_NC)), seen_S, assume_unique=True)
    labels, distances = nearest_core(points_NC[others], points_SC[is_core_S], seen.labels_N[is_core_S], eps)
    counts = count_near(points_NC[others], points_SC, eps)
    order = np.argsort(np.concatenate([seen_S, others]))
    both = Density(
        np.concatenate([seen.labels_N, labels]),
        np.concatenate([seen.counts_N, counts]),
        np.concatenate([seen.distances_N, distances]),
    ).of(order)
    both.labels_N[both.labels_N >= 0] = by_size(both.labels_N[both.labels_N >= 0])
    return Clusters(points_NC, both, eps, variance)


def choose_eps(points_SC: Array, measured: Array, neighbours: int) -> float:
    """The median distance to the last of a row's nearest `neighbours`: about half of the rows become core rows.

    The knee of these distances lies far higher, where most rows are one cluster.
    """
    if not len(points_SC):
        return 1.0
    distances = distances_to_neighbours(points_SC, measured, neighbours)
    # a little more, so that rounding does not decide about rows at just this distance
    return float(np.quantile(distances, QUANTILE)) * 1.001 + 1e-3
