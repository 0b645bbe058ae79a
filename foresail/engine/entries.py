"""What one decode step works on: an entry per running row, and one more per drafted token.

A drafted token is an entry like any other, with a place in the cache behind its row's context. So the step
that verifies drafts is the step that decodes, only with more entries.

Legend: E entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    sizes = np.array([1 + len(drafts[s].tokens) if s in drafts else 1 for s in slots.tolist()])
    block = np.empty((NUM_COLUMNS, sizes.sum()), dtype=np.int32)
    firsts = sizes.cumsum() - sizes
    block[:, firsts] = root_entries(slots)
    for slot, first in zip(slots.tolist(), firsts.tolist(), strict=True):
        if slot in drafts:
            block[:, first + 1 : first + 1 + len(drafts[slot].tokens)] = draft_entries(slot, drafts[slot])
    return block


def root_entries(slots: np.ndarray) -> np.ndarray:
    block = np.zeros((NUM_COLUMNS, len(slots)), dtype=np.int32)
    block[0], block[3], block[5] = slots, ROOT_PARENT, 1
    return block


def draft_entries(slot: int, draft: Draft) -> np.ndarray:
    """Nodes 1.. of a row: draft_entries(3, Draft(tokens=(5, 9))) has depths 1, 2 and sights 0b11, 0b111."""
    parents = draft.parents or tuple(range(-1, len(draft.tokens) - 1))
    depths, sights = [0], [1]
    for node, parent in enumerate(parents, start=1):
        depths.append(depths[parent + 1] + 1)
        sights.append(sights[parent + 1] | 1 << node)
    count = len(draft.tokens)
    columns = ([slot] * count, range(1, count + 1), depths[1:], np.add(parents, 1), draft.tokens, sights[1:])
    return np.array([list(column) for column in columns], dtype=np.int32).reshape(NUM_COLUMNS, count)
