"""DBSCAN beside its definition, and beside scikit-learn where that is installed; PCA; fuzzy labels."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import foresail.curate.select.density as density
from foresail.curate.deduplicate.blocks import Array
from foresail.curate.select.density import Density, count_near, dbscan, distances_to_neighbours, nearest_core
from foresail.curate.select.membership import fuzzy_labels
from foresail.curate.select.projection import project


@st.composite
def clouds(draw: st.DrawFn) -> Array:
    """Points of a few clouds, on a grid off which no distance is near eps."""
    count, seed = draw(st.integers(0, 60)), draw(st.integers(0, 2**31))
    generator = np.random.default_rng(seed)
    centres = generator.integers(-20, 20, (4, 2))
    points: Array = (centres[generator.integers(0, 4, count)] + generator.integers(-4, 5, (count, 2))).astype(
        np.float32
    )
    return points


def by_definition(points: Array, eps: float, neighbours: int) -> tuple[Array, list[set[int]]]:
    """Core rows, and the sets of them that are connected."""
    near = np.linalg.norm(points[:, None] - points[None], axis=2) <= eps
    is_core = near.sum(1) >= neighbours
    left, groups = set(np.flatnonzero(is_core).tolist()), []
    while left:
        group, waiting = set(), [left.pop()]
        while waiting:
            row = waiting.pop()
            group.add(row)
            new = {other for other in left if near[row, other]}
            left -= new
            waiting += new
        groups.append(group)
    return is_core, groups


@settings(max_examples=60, deadline=None)
@given(points=clouds(), eps=st.sampled_from([1.1, 1.6, 2.1, 3.1]), neighbours=st.integers(1, 6))
def test_clusters_are_those_of_the_definition(points: Array, eps: float, neighbours: int) -> None:
    density_of_rows, is_core = dbscan(points, eps, neighbours)
    labels = density_of_rows.labels_N
    expected_core, groups = by_definition(points, eps, neighbours)
    assert np.array_equal(is_core, expected_core)
    assert {
        frozenset(np.flatnonzero(is_core & (labels == label)).tolist()) for label in set(labels[is_core])
    } == {frozenset(group) for group in groups}
    for row in np.flatnonzero(~is_core):
        distances = np.linalg.norm(points[is_core] - points[row], axis=1)
        least = distances.min(initial=np.inf)
        allowed = set(labels[is_core][distances == least]) if least <= eps else {-1}
        assert labels[row] in allowed
        assert density_of_rows.distances_N[row] == pytest.approx(least, abs=1e-4)
    sizes = np.bincount(labels[labels >= 0])
    assert list(sizes) == sorted(sizes, reverse=True) and np.all(sizes > 0)


@settings(max_examples=20, deadline=None)
@given(points=clouds(), eps=st.sampled_from([1.1, 2.1]), neighbours=st.integers(1, 6))
def test_scikit_learn_has_the_same_clusters(points: Array, eps: float, neighbours: int) -> None:
    try:
        cluster = importlib.import_module("sklearn.cluster")
    except ImportError:
        pytest.skip("needs scikit-learn")
    clusters, is_core = dbscan(points, eps, neighbours)
    labels = clusters.labels_N
    if not len(points):
        return
    theirs = cluster.DBSCAN(eps=eps, min_samples=neighbours).fit(points)
    assert np.array_equal(np.flatnonzero(is_core), np.sort(theirs.core_sample_indices_))
    assert np.array_equal(labels < 0, theirs.labels_ < 0)
    pairs = set(zip(labels[is_core].tolist(), theirs.labels_[is_core].tolist(), strict=True))
    assert len(pairs) == len({own for own, _ in pairs}) == len({other for _, other in pairs})


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    whole = dbscan(points, 0.5, 5)
    monkeypatch.setattr(density, "PAIRS_AT_ONCE", 700)
    parts = dbscan(points, 0.5, 5)
    assert np.array_equal(whole[0].labels_N, parts[0].labels_N) and np.array_equal(whole[1], parts[1])
    assert np.array_equal(count_near(points, points, 0.5), whole[0].counts_N)
    assert nearest_core(points, points[:0], np.zeros(0), 1.0)[0].tolist() == [-1] * 300


def test_distances_to_neighbours_are_those_of_all_pairs() -> None:
    points = np.random.default_rng(1).normal(size=(50, 2)).astype(np.float32)
    distances = np.sort(np.linalg.norm(points[:, None] - points[None], axis=2), axis=1)
    assert np.allclose(distances_to_neighbours(points, np.arange(50), 4), np.sort(distances[:, 3]), atol=1e-5)


def test_a_projection_keeps_distances_where_it_keeps_all_variance() -> None:
    generator = np.random.default_rng(2)
    vectors = (generator.normal(size=(40, 3)) @ generator.normal(size=(3, 10))).astype(np.float32)

    def blocks() -> Iterator[Array]:
        yield from np.array_split(vectors, 3)

    points, variance = project(blocks, 3)
    assert variance == pytest.approx(1) and points.shape == (40, 3)
    for one, other in combinations(range(10), 2):
        assert np.linalg.norm(points[one] - points[other]) == pytest.approx(
            np.linalg.norm(vectors[one] - vectors[other]), rel=1e-4
        )
    assert np.allclose(points.mean(0), 0, atol=1e-5)
    assert project(blocks, 1)[1] < 1


def test_memberships_sum_to_one_and_fall_with_the_distance() -> None:
    points = np.array([[0, 0], [0.2, 0], [10, 0], [10.2, 0], [4, 0]], np.float32)
    distances = np.array([0, 0, 0, 0, 3.8])
    labels = fuzzy_labels(points, Density(np.array([0, 0, 1, 1, -1]), np.ones(5), distances), 1.9, 3)
    assert np.allclose(labels.weights_NM.sum(1) + labels.alone_N, 1)
    assert labels.alone_N.tolist() == [0, 0, 0, 0, 0.75]
    noise = dict(zip(labels.clusters_NM[4, 1:].tolist(), labels.weights_NM[4, 1:].tolist(), strict=True))
    assert labels.clusters_NM[4, 0] == 0 and noise[0] > noise[1] > 0
    assert labels.sizes().sum() == pytest.approx(4.25)
    alone = fuzzy_labels(points, Density(np.full(5, -1), np.ones(5), np.full(5, np.inf)), 1.9, 3)
    assert alone.alone_N.tolist() == [1] * 5 and alone.sizes().tolist() == [0]
