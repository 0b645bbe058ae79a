"""PCA of vectors in many blocks: one pass for mean and covariance, one that projects.

Legend: N rows, D dimensions, C components.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from foresail.curate.deduplicate.blocks import Array

Blocks = Callable[[], Iterator[Array]]  # of vectors, in an order that stays


def project(blocks: Blocks, components: int) -> tuple[Array, float]:
    """Coordinates in float32, centred, and the share of the variance that they keep."""
    count, sum_D, products_DD = 0, np.zeros(0), np.zeros((0, 0))
    for vectors_ND in blocks():
        exact_ND = vectors_ND.astype(np.float64)
        if not count:
            sum_D, products_DD = np.zeros(exact_ND.shape[1]), np.zeros((exact_ND.shape[1],) * 2)
        count += len(exact_ND)
        sum_D += exact_ND.sum(0)
        products_DD += exact_ND.T @ exact_ND
    if not count:
        return np.zeros((0, components), np.float32), 1.0
    mean_D = sum_D / count
    values_D, vectors_DD = np.linalg.eigh(products_DD / count - np.outer(mean_D, mean_D))
    basis_DC = vectors_DD[:, ::-1][:, :components]
    values_D = np.maximum(values_D, 0)
    variance = float(values_D[::-1][:components].sum() / max(values_D.sum(), 1e-30))
    points = [((vectors_ND - mean_D) @ basis_DC).astype(np.float32) for vectors_ND in blocks()]
    return np.concatenate(points), variance
