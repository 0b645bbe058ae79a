"""A sum of decision trees, evaluated by compiled code.

Node n asks: feature[n] <= threshold[n]? Yes: left[n], no: right[n]. A negative node is leaf ~n: add its value.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from foresail.curate.extract.content.scan import Array


@dataclass(frozen=True, slots=True)
class Trees:
    roots: Array
    features: Array
    thresholds: Array
    left: Array
    right: Array
    values: Array

    def score(self, matrix: Array) -> Array:
        """Of every row of a float32 matrix."""
        return add_trees(
            matrix, self.roots, self.features, self.thresholds, self.left, self.right, self.values
        )

    def probability(self, matrix: Array) -> Array:
        return (1.0 / (1.0 + np.exp(-self.score(matrix)))).astype(np.float32)


@njit(cache=True)
def add_trees(
    matrix: Array, roots: Array, features: Array, thresholds: Array, left: Array, right: Array, values: Array
) -> Array:
    rows = len(matrix)
    total = np.zeros(rows, np.float32)
    for root in roots:
        for row in range(rows):
            node = root
            while node >= 0:
                if matrix[row, features[node]] <= thresholds[node]:
                    node = left[node]
                else:
                    node = right[node]
            total[row] += values[~node]
    return total
