"""The device's copy of the table, which decode steps read and advance without the host.

Legend: S slots and one scratch row, P pages per row, X stop ids per row.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from foresail.engine.request import MAX_STOPS
from foresail.engine.table import NO_ID, Table

INTEGERS = ("last_S", "lengths_S", "left_S", "keys_S", "top_k_S")
FLOATS = ("temperature_S", "top_p_S", "min_p_S")


def upload(array: np.ndarray, device: torch.device) -> Tensor:
    """Copy through pinned memory, else the copy would wait for all earlier work."""
    return torch.from_numpy(np.ascontiguousarray(array)).pin_memory().to(device, non_blocking=True)


class DeviceTable:
    """Lines are copied from the host when a row gets its slot; then `advance` updates them.

    The last slot is a scratch row on a scratch page, for padding entries.
    """

    def __init__(self, table: Table, scratch_page: int, device: torch.device) -> None:
        self.table, self.device = table, device
        self.scratch, columns = table.pages_SP.shape
        slots = self.scratch + 1
        self.integers = torch.zeros(len(INTEGERS), slots, dtype=torch.int64, device=device)
        self.floats = torch.ones(len(FLOATS), slots, dtype=torch.float32, device=device)
        self.stops_SX = torch.full((slots, MAX_STOPS), NO_ID, dtype=torch.int64, device=device)
        self.pages_SP = torch.full((slots, columns), scratch_page, dtype=torch.int32, device=device)
        self.last_S, self.lengths_S, self.left_S, self.keys_S, self.top_k_S = self.integers
        self.temperature_S, self.top_p_S, self.min_p_S = self.floats
        self.lengths_S[self.scratch] = 1

    def update_rows(self, slots: np.ndarray) -> None:
        table, rows = self.table, upload(slots, self.device)
        integers = np.stack([getattr(table, name)[slots] for name in INTEGERS])
        floats = np.stack([getattr(table, name)[slots] for name in FLOATS])
        self.integers.index_copy_(1, rows, upload(integers, self.device))
        self.floats.index_copy_(1, rows, upload(floats, self.device))
        self.stops_SX.index_copy_(0, rows, upload(table.stops_SX[slots], self.device))
        width = int(table.num_pages_S[slots].max())
        if width:
            self.pages_SP[:, :width].index_copy_(0, rows, upload(table.pages_SP[slots, :width], self.device))

    def add_pages(self, slots: np.ndarray, columns: np.ndarray, pages: list[int]) -> None:
        cells, pages_N = upload(np.stack((slots * self.pages_SP.shape[1] + columns, pages)), self.device)
        self.pages_SP.view(-1).index_copy_(0, cells, pages_N.int())
