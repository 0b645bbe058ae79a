"""The paged KV cache.

Legend: T tokens, N pages, K key/value heads, d head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from foresail.engine.request import SavedKV
from foresail.engine.routes import UNKNOWN, RecordedRoutes, RouteCache
from foresail.recipe.shape.model_shape import ModelShape


class KVCache:
    """Keys and values of all layers; a place is page * page_size + offset. `routes`: the experts of the tokens,
    where they are recorded.
    """

    routes: RouteCache | None = None

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values
        # Whole pages are copied as bytes: PyTorch lacks arithmetic for eight-bit floats.
        raw = torch.uint8 if keys.element_size() == 1 else keys.dtype
        self.raw = (keys.view(raw), values.view(raw))
        self._gathered = torch.empty(2, 0, *keys.shape[2:], dtype=keys.dtype, device=keys.device)

    @staticmethod
    def size(shape: ModelShape, num_pages: int, page_size: int) -> tuple[int, ...]:
        return (shape.cached_layers, num_pages, page_size, shape.num_kv_heads, shape.head_dim)

    @staticmethod
    def zeros(shape: ModelShape, num_pages: int, page_size: int, dtype: torch.dtype) -> KVCache:
        size = KVCache.size(shape, num_pages, page_size)
        return KVCache(torch.zeros(size, dtype=dtype), torch.zeros(size, dtype=dtype))

    def write(self, layer: int, places_T: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> None:
        self.keys[layer].flatten(0, 1).index_copy_(0, places_T, k_TKd)
        self.values[layer].flatten(0, 1).index_copy_(0, places_T, v_TKd)

    def gather(self, layer: int, pages_N: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of these pages, contiguous, valid until the next call.

        The buffer is used again: on a CPU new memory at every step takes longer than the copying.
        """
        count = pages_N.numel()
        if self._gathered.shape[1] < count:
            self._gathered = self._gathered.new_empty(2, count, *self._gathered.shape[2:])
        keys, values = self._gathered[:, :count]
        torch.index_select(self.keys[layer], 0, pages_N, out=keys)
        torch.index_select(self.values[layer], 0, pages_N, out=values)
        return keys, values

    def route(self, places_T: Tensor) -> RecordedRoutes | None:
        """Records the experts of a pass over tokens at these places, if enabled."""
        return None if self.routes is None else RecordedRoutes(self.routes, places_T)

    def copy_pages(self, sources: list[int], targets: list[int]) -> None:
        sources_N, targets_N = self.indexes((sources, targets))
        for pages in self.raw:
            pages.index_copy_(1, targets_N, pages.index_select(1, sources_N))
        if self.routes is not None:
            routes = self.routes.experts
            routes.index_copy_(1, targets_N, routes.index_select(1, sources_N))

    def indexes(self, numbers: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(numbers)

    def save(self, pages: list[int], num_tokens: int) -> SavedKV:
        return SavedKV(
            pages=torch.stack((self.keys[:, pages], self.values[:, pages])),
            num_tokens=num_tokens,
            routes=None if self.routes is None else self.routes.experts[:, pages],
        )

    def load(self, saved: SavedKV, pages: list[int]) -> None:
        self.keys[:, pages], self.values[:, pages] = saved.pages
        if self.routes is not None:
            self.routes.experts[:, pages] = UNKNOWN if saved.routes is None else saved.routes
