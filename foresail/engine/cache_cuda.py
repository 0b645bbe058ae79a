"""The KV cache on CUDA: its address is fixed, since graphs hold it, but its memory can be lent.

Legend: N pages, K key/value heads, d head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from foresail.engine.cache import KVCache
from foresail.engine.device_memory import DeviceMemory
from foresail.engine.kernels.cache import write_kv
from foresail.engine.request import SavedKV
from foresail.engine.routes import UNKNOWN
from foresail.engine.table_cuda import upload
from foresail.recipe.shape.model_shape import ModelShape

PIECE_BYTES = 64 * 2**20  # of a copy to or from the host, through a contiguous buffer


class CudaKVCache(KVCache):
    """A `KVCache` whose copies to and from the host overlap with forward passes."""

    def __init__(
        self, shape: ModelShape, num_pages: int, page_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.size_2 = (2, *KVCache.size(shape, num_pages, page_size))
        self.dtype = dtype
        num_bytes = torch.Size(self.size_2).numel() * dtype.itemsize
        self.memory = DeviceMemory(num_bytes, device)
        self.copies = torch.cuda.Stream(device)
        self.take_memory()

    def take_memory(self) -> None:
        self.memory.take()
        keys, values = self.memory.tensor(self.size_2, self.dtype)
        # zeros: unused places are multiplied by zero, which would keep NaN
        keys.view(torch.uint8).zero_()
        values.view(torch.uint8).zero_()
        super().__init__(keys, values)

    def give_back_memory(self) -> None:
        self.memory.give_back()

    def write(self, layer: int, places_T: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> None:
        write_kv(self.keys[layer], self.values[layer], places_T, k_TKd, v_TKd)

    def indexes(self, numbers: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
        """A tensor on the device, without waiting for its work."""
        return upload(np.array(numbers), self.keys.device)

    def save(self, pages: list[int], num_tokens: int) -> SavedKV:
        """Gathered by the current stream, after which the pages are free; copied by another stream."""
        layers, _, *page = self.keys.shape
        host = torch.empty(2, layers, len(pages), *page, dtype=self.raw[0].dtype, pin_memory=True)
        pages_N = self.indexes(pages)
        for side, layer in self._pieces(len(pages)):
            part = self.raw[side][layer].index_select(1, pages_N)
            self.copies.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.copies):
                host[side, layer].copy_(part, non_blocking=True)
            part.record_stream(self.copies)
        routes = None
        if self.routes is not None:
            chosen = self.routes.experts.index_select(1, pages_N)
            routes = torch.empty(chosen.shape, dtype=chosen.dtype, pin_memory=True)
            self.copies.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.copies):
                routes.copy_(chosen, non_blocking=True)
            chosen.record_stream(self.copies)
        with torch.cuda.stream(self.copies):
            ready = torch.cuda.Event()
            ready.record()
        return SavedKV(pages=host, num_tokens=num_tokens, routes=routes, ready=ready)

    def load(self, saved: SavedKV, pages: list[int]) -> None:
        """Forward passes launched after this see the pages filled."""
        saved.wait()
        pages_N = self.indexes(pages)
        for side, layer in self._pieces(len(pages)):
            with torch.cuda.stream(self.copies):
                part = saved.pages[side, layer].to(self.keys.device, non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.copies)
            part.record_stream(torch.cuda.current_stream())
            self.raw[side][layer].index_copy_(1, pages_N, part)
        if self.routes is not None and saved.routes is None:
            self.routes.experts.index_fill_(1, pages_N, UNKNOWN)
        elif self.routes is not None and saved.routes is not None:
            chosen = saved.routes.to(self.keys.device, non_blocking=True)
            self.routes.experts.index_copy_(1, pages_N, chosen)

    def _pieces(self, num_pages: int) -> list[tuple[int, slice]]:
        """Keys, then values, in groups of layers of at most PIECE_BYTES."""
        layers, _, *page = self.keys.shape
        layer_bytes = num_pages * torch.Size(page).numel() * self.dtype.itemsize
        group_size = max(1, PIECE_BYTES // layer_bytes)
        return [
            (side, slice(first, first + group_size))
            for side in (0, 1)
            for first in range(0, layers, group_size)
        ]
