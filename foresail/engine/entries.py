"""The entries of a decode step: one for each running row, and one for each drafted token.

A drafted token is an entry like any other, with a place in the cache after its row's context. So a step that
verifies drafts is a decode step with more entries.

Legend: E entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from foresail.engine.drafts import Drafts


@dataclass(frozen=True)
class Entries:
    """Equal columns, numpy on the host and int32 tensors on the device; the entries of a row are neighbours.

    A row's last token is its entry at offset 0, its n-th drafted token at offset n. An entry is cached `offset`
    places after the context; it sees the context, its row's earlier entries and itself.
    """

    slots_E: Any
    offsets_E: Any
    drafts_E: Any  # the drafted token, or `UNREAD`; unused at offset 0

    def __len__(self) -> int:
        return len(self.slots_E)


NUM_COLUMNS = 3


def plan_entries(slots: np.ndarray, drafts: Drafts | None = None) -> np.ndarray:
    """The columns as one int32 block, row after row.

    Slot 4 without a draft and slot 3 with 5 9 -> slots 4 3 3 3, offsets 0 0 1 2, drafts 0 0 5 9.
    """
    if drafts is None:
        return plain_entries(slots)
    sizes = 1 + drafts.sizes_of(slots)
    block = plain_entries(np.repeat(slots, sizes))
    block[1] = offsets_E = np.arange(sizes.sum()) - np.repeat(sizes.cumsum() - sizes, sizes)
    drafted_E = offsets_E > 0
    lines = np.repeat(drafts.lines_of(slots), sizes)[drafted_E]
    block[2, drafted_E] = drafts.tokens_RK[lines, offsets_E[drafted_E] - 1]
    return block


def plain_entries(slots: np.ndarray) -> np.ndarray:
    """One entry per row."""
    block = np.zeros((NUM_COLUMNS, len(slots)), dtype=np.int32)
    block[0] = slots
    return block
