"""Groups entries of a decode step that read the same pages into packs, so that a kernel reads them once.

A pack is a run of neighbouring entries whose rows begin with the same pages: the samples of one prompt, or one row
with its drafted tokens.

Legend: E entries, R runs of entries that may be packed.
"""

from __future__ import annotations

import numpy as np

from foresail.engine.table import Table

NUM_LINES = 3


def plan_packs(table: Table, block: np.ndarray, max_entries: int, page_size: int) -> np.ndarray:
    """Three int32 lines: the packs' first entries, their sizes, and per entry how many tokens its pack shares.

    Packs come first on their two lines, zeros follow. A pack has two to `max_entries` entries.
    """
    slots_E = block[0]
    lines = np.zeros((NUM_LINES, len(slots_E)), dtype=np.int32)
    drafted_E = np.bincount(slots_E, minlength=len(table.groups_S))[slots_E] > 1
    # A row with a draft is packed with itself: its entries share all its whole pages.
    own_E = (table.lengths_S[slots_E] - 1) // page_size * page_size
    shared_E = np.where(drafted_E, own_E, table.shared_S[slots_E])
    keys_E = np.where(drafted_E, -1 - slots_E.astype(np.int64), table.groups_S[slots_E])
    first_E = np.concatenate(([True], keys_E[1:] != keys_E[:-1])) | (shared_E == 0)
    runs_R = np.flatnonzero(first_E)
    within_E = np.arange(len(slots_E)) - np.repeat(runs_R, np.diff([*runs_R, len(slots_E)]))
    starts = np.flatnonzero(within_E % max_entries == 0)
    sizes = np.diff([*starts, len(slots_E)])
    packed = sizes > 1
    lines[0, : packed.sum()], lines[1, : packed.sum()] = starts[packed], sizes[packed]
    lines[2] = np.where(np.repeat(packed, sizes), shared_E, 0)
    return lines


def tokens_saved(lines: np.ndarray) -> int:
    """How many cached tokens need not be read again: three siblings that share 512 save 1,024."""
    firsts, sizes, shared_E = lines
    return int(((sizes - 1) * shared_E[firsts])[sizes > 0].sum())
