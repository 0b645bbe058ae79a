"""The tree around blocks, compiled: for every block the elements that hold it and more, from the inside out."""

from __future__ import annotations

import numpy as np
from numba import njit

from foresail.curate.extract.content.scan import Array


@njit(cache=True)
def block_ranges(block_of: Array, ends: Array, blocks: int) -> tuple[Array, Array]:
    """Of every node: the number of its first block, and one more than that of its last."""
    size = len(block_of)
    first, last = np.full(size + 1, blocks, np.int32), np.zeros(size + 1, np.int32)
    for node in range(size - 1, -1, -1):
        first[node] = block_of[node] if block_of[node] >= 0 else first[node + 1]
    for node in range(size):
        last[node + 1] = block_of[node] + 1 if block_of[node] >= 0 else last[node]
    stop = np.zeros(size, np.int32)
    for node in range(size):
        stop[node] = max(first[node], last[ends[node]])
    return first[:size], stop


@njit(cache=True)
def climb(holders: Array, parents: Array, first: Array, stop: Array, levels: int) -> tuple[Array, Array]:
    """The elements around every block, each with more blocks than the one before: [block, level]; and how many.

    A chain of elements with the same blocks is its outermost one. Where the page ends, the last is repeated.
    """
    blocks = len(holders)
    found = np.zeros((blocks, levels), np.int32)
    outermost = np.zeros(len(parents), np.int32)  # of the chain that a node is in
    height = np.zeros(len(parents), np.int32)
    for node in range(len(parents)):
        parent = parents[node]
        outermost[node] = node
        if parent >= 0:
            if first[parent] == first[node] and stop[parent] == stop[node]:
                outermost[node] = outermost[parent]
                height[node] = height[parent]
            else:
                height[node] = height[parent] + 1
    heights = np.zeros(blocks, np.int32)
    for block in range(blocks):
        node = outermost[holders[block]]
        heights[block] = height[node]
        for level in range(levels):
            found[block, level] = node
            if parents[node] >= 0:
                node = outermost[parents[node]]
    return found, heights


@njit(cache=True)
def count_above(parents: Array, marks: Array, kinds: int) -> Array:
    """How many elements of every kind are above a node, itself included: [node, kind]. marks: kind or -1."""
    above = np.zeros((len(parents), kinds), np.int8)
    for node in range(len(parents)):
        parent = parents[node]
        if parent >= 0:
            above[node] = above[parent]
        if marks[node] >= 0 and above[node, marks[node]] < 100:
            above[node, marks[node]] += 1
    return above


@njit(cache=True)
def along_paths(parents: Array, scores: Array, bits: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Sum, least and greatest score on the way from the root to every node; bits that occur there; depth."""
    size = len(parents)
    total, least, most = np.zeros(size, np.float32), np.zeros(size, np.float32), np.zeros(size, np.float32)
    seen, depth = np.zeros(size, np.uint8), np.zeros(size, np.int32)
    for node in range(size):
        parent = parents[node]
        if parent < 0:
            total[node] = least[node] = most[node] = scores[node]
            seen[node] = bits[node]
        else:
            total[node] = total[parent] + scores[node]
            least[node] = min(least[parent], scores[node])
            most[node] = max(most[parent], scores[node])
            seen[node] = seen[parent] | bits[node]
            depth[node] = depth[parent] + 1
    return total, least, most, seen, depth


@njit(cache=True)
def best_range(values: Array, parents: Array, first: Array, stop: Array) -> int:
    """The node whose blocks have the greatest sum."""
    sums = np.zeros(len(values) + 1)
    for block in range(len(values)):
        sums[block + 1] = sums[block] + values[block]
    best, most = 0, -1e30
    for node in range(len(parents)):
        if stop[node] > first[node]:
            value = sums[stop[node]] - sums[first[node]]
            if value >= most:
                best, most = node, value
    return best
