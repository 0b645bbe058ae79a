"""What one decode step works on: an entry per running row, and one more per drafted token.

A drafted token is an entry like any other, with a place in the cache behind its row's context. So the step
that verifies drafts is the step that decodes, only with more entries.

Legend: E entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foresail.engine.guesses import Guesses

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


def plan_entries(slots: np.ndarray, guesses: Guesses | None = None) -> np.ndarray:
    """The columns as one int32 block, row after row."""
    if guesses is None:
        return root_entries(slots)
    sizes = 1 + guesses.sizes_of(slots)
    block = root_entries(np.repeat(slots, sizes))
    block[1] = nodes_E = np.arange(sizes.sum()) - np.repeat(sizes.cumsum() - sizes, sizes)
    drafted_E = nodes_E > 0
    at = np.repeat(guesses.lines_of(slots), sizes)[drafted_E], nodes_E[drafted_E] - 1
    block[4, drafted_E] = guesses.tokens_RK[at]
    if guesses.parents_RK is None:
        block[2], block[3], block[5] = nodes_E, nodes_E - 1, (2 << nodes_E) - 1
    else:
        block[2, drafted_E] = guesses.depths_RK[at]
        block[3, drafted_E] = guesses.parents_RK[at] + 1  # node 0 is the row's last token
        block[5, drafted_E] = guesses.sights_RK[at]
    return block


def root_entries(slots: np.ndarray) -> np.ndarray:
    block = np.zeros((NUM_COLUMNS, len(slots)), dtype=np.int32)
    block[0], block[3], block[5] = slots, ROOT_PARENT, 1
    return block
