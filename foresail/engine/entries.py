"""What one decode step works on: an entry per running row, and one more per drafted token.

A drafted token is an entry like any other, with a place in the cache behind its row's context. So the step
that verifies drafts is the step that decodes, only with more entries.

Legend: E entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from foresail.engine.request import Draft

ROOT_PARENT = -1


@dataclass(frozen=True)
class Entries:
    """Equal columns, numpy on the host and int32 tensors on the device; the entries of a row are neighbours.

    A row's nodes are its last token (node 0, the root) and its drafted tokens. Node n is cached n places
    behind the context, turned by its depth, and sees of its own tree the nodes whose bits are set.
    """

    slots_E: Any
    nodes_E: Any
    depths_E: Any
    parents_E: Any
    drafts_E: Any  # the drafted token; nothing at a root, whose token is the row's last
    sights_E: Any

    def __len__(self) -> int:
        return len(self.slots_E)


NUM_COLUMNS = 6


def plan_entries(slots: np.ndarray, drafts: Mapping[int, Draft]) -> np.ndarray:
    """The columns as one int32 block, row after row; `drafts` by slot."""
    if not drafts:
        return root_entries(slots)
    guesses = [drafts[slot].tokens if slot in drafts else () for slot in slots.tolist()]
    sizes = np.array([1 + len(tokens) for tokens in guesses])
    firsts = sizes.cumsum() - sizes
    nodes_E = np.arange(sizes.sum()) - np.repeat(firsts, sizes)
    tokens_E = np.fromiter(chain.from_iterable((0, *tokens) for tokens in guesses), np.int32, len(nodes_E))
    # as if every draft were a path, whose nodes see all before them
    columns = (np.repeat(slots, sizes), nodes_E, nodes_E, nodes_E - 1, tokens_E, (2 << nodes_E) - 1)
    block = np.stack([column.astype(np.int32) for column in columns])
    for slot, first in zip(slots.tolist(), firsts.tolist(), strict=True):
        if slot in drafts and drafts[slot].parents is not None:
            block[2:6, first + 1 : first + 1 + len(drafts[slot].tokens)] = tree_entries(drafts[slot])
    return block


def root_entries(slots: np.ndarray) -> np.ndarray:
    block = np.zeros((NUM_COLUMNS, len(slots)), dtype=np.int32)
    block[0], block[3], block[5] = slots, ROOT_PARENT, 1
    return block


def tree_entries(draft: Draft) -> np.ndarray:
    """Depths, parents, tokens and sights of nodes 1.. of a row.

    Draft(tokens=(5, 9, 7), parents=(-1, 0, -1)) has depths 1, 2, 1, parents 0, 1, 0 and sights 0b11, 0b111, 0b1001.
    """
    assert draft.parents is not None
    depths, sights = [0], [1]
    for node, parent in enumerate(draft.parents, start=1):
        depths.append(depths[parent + 1] + 1)
        sights.append(sights[parent + 1] | 1 << node)
    columns = (depths[1:], [parent + 1 for parent in draft.parents], draft.tokens, sights[1:])
    return np.array(columns, dtype=np.int32)
