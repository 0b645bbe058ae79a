"""The paged KV cache, and plain PyTorch's way of attending over it.

Legend: T tokens, E entries, C chunks, P pages per row, N pages, L places per row, Q the most new tokens of a
chunk, H query heads, K key/value heads, G query heads per key head, d head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.engine.request import SavedKV
from foresail.recipe.shape import ModelShape


class KVCache:
    """Keys and values of all layers; a place is page * page_size + offset."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys, self.values = keys, values
        # What copies whole pages needs no arithmetic, which PyTorch lacks for eight-bit floats.
        raw = torch.uint8 if keys.element_size() == 1 else keys.dtype
        self.raw = (keys.view(raw), values.view(raw))
        self._gathered = torch.empty(2, 0, *keys.shape[2:], dtype=keys.dtype, device=keys.device)

    @staticmethod
    def size(shape: ModelShape, num_pages: int, page_size: int) -> tuple[int, ...]:
        return (shape.num_layers, num_pages, page_size, shape.num_kv_heads, shape.head_dim)

    @staticmethod
    def zeros(shape: ModelShape, num_pages: int, page_size: int, dtype: torch.dtype) -> KVCache:
        size = KVCache.size(shape, num_pages, page_size)
        return KVCache(torch.zeros(size, dtype=dtype), torch.zeros(size, dtype=dtype))

    def write(self, layer: int, places_T: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> None:
        self.keys[layer].flatten(0, 1).index_copy_(0, places_T, k_TKd)
        self.values[layer].flatten(0, 1).index_copy_(0, places_T, v_TKd)

    def gather(self, layer: int, pages_N: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of these pages, side by side, until the next call.

        The room for them is kept: on a CPU, fresh memory at every step takes longer than the copying.
        """
        count = pages_N.numel()
        if self._gathered.shape[1] < count:
            self._gathered = self._gathered.new_empty(2, count, *self._gathered.shape[2:])
        keys, values = self._gathered[:, :count]
        torch.index_select(self.keys[layer], 0, pages_N, out=keys)
        torch.index_select(self.values[layer], 0, pages_N, out=values)
        return keys, values

    def copy_pages(self, sources: list[int], targets: list[int]) -> None:
        sources_N, targets_N = self.indexes((sources, targets))
        for pages in self.raw:
            pages.index_copy_(1, targets_N, pages.index_select(1, sources_N))

    def move(self, sources: list[int], targets: list[int]) -> None:
        """Copy single places, all read before the first is written."""
        sources_N, targets_N = self.indexes((sources, targets))
        for pages in self.raw:
            places = pages.flatten(1, 2)
            places.index_copy_(1, targets_N, places.index_select(1, sources_N))

    def indexes(self, numbers: Sequence[int] | Sequence[Sequence[int]]) -> Tensor:
        return torch.tensor(numbers)

    def save(self, pages: list[int], num_tokens: int) -> SavedKV:
        return SavedKV(pages=torch.stack((self.keys[:, pages], self.values[:, pages])), num_tokens=num_tokens)

    def load(self, saved: SavedKV, pages: list[int]) -> None:
        self.keys[:, pages], self.values[:, pages] = saved.pages


class EntryAttention:
    """One token per entry over its row's pages; of its row's drafted tokens it sees its ancestors."""

    def __init__(
        self, cache: KVCache, tables_EP: Tensor, places_E: Tensor, bases_E: Tensor, sights_E: Tensor
    ) -> None:
        self.cache, self.tables_EP, self.places_E = cache, tables_EP, places_E
        page_size = cache.keys.shape[2]
        beyond_EL = torch.arange(tables_EP.shape[1] * page_size) - bases_E[:, None]
        visible_EL = (beyond_EL < 0) | (sights_E[:, None] >> beyond_EL.clamp(0, 31) & 1).bool()
        # An additive mask: the unused tail of a page may hold any finite number, and this hides it.
        self.mask_E11L = torch.zeros(visible_EL.shape, dtype=cache.keys.dtype)
        self.mask_E11L = self.mask_E11L.masked_fill_(~visible_EL, -torch.inf)[:, None, None]

    def __call__(self, layer: int, q_EHd: Tensor, k_EKd: Tensor, v_EKd: Tensor) -> Tensor:
        self.cache.write(layer, self.places_E, k_EKd, v_EKd)
        k_EKLd, v_EKLd = (
            rows(part, self.tables_EP) for part in self.cache.gather(layer, self.tables_EP.flatten())
        )
        # The query heads that share a key head stand as rows of one query: nothing is repeated.
        q_EKGd = q_EHd.unflatten(1, (k_EKd.shape[1], -1))
        return F.scaled_dot_product_attention(q_EKGd, k_EKLd, v_EKLd, attn_mask=self.mask_E11L).flatten(1, 2)


class ChunkAttention:
    """The next tokens of several contexts over what is cached of them already, and themselves."""

    def __init__(
        self, cache: KVCache, tables_CP: Tensor, places_T: Tensor, positions_T: Tensor, lengths_C: Tensor
    ) -> None:
        self.cache, self.tables_CP, self.places_T = cache, tables_CP, places_T
        self.num_chunks, self.longest = len(lengths_C), int(lengths_C.max())
        chunks_T = torch.repeat_interleave(torch.arange(self.num_chunks), lengths_C)
        starts_C = lengths_C.cumsum(0) - lengths_C
        self.cells_T = chunks_T * self.longest + torch.arange(len(chunks_T)) - starts_C[chunks_T]
        places_L = torch.arange(tables_CP.shape[1] * cache.keys.shape[2])
        last_CQ = torch.zeros(self.num_chunks * self.longest, dtype=torch.int64)
        last_CQ = last_CQ.index_copy(0, self.cells_T, positions_T).unflatten(0, (self.num_chunks, -1))
        self.mask_C1QL = (places_L <= last_CQ[..., None])[:, None]

    def keep(self, layer: int, k_TKd: Tensor, v_TKd: Tensor) -> None:
        self.cache.write(layer, self.places_T, k_TKd, v_TKd)

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        self.keep(layer, k_TKd, v_TKd)
        k_CKLd, v_CKLd = (
            rows(part, self.tables_CP) for part in self.cache.gather(layer, self.tables_CP.flatten())
        )
        q_CQHd = q_THd.new_zeros(self.num_chunks * self.longest, *q_THd.shape[1:])
        q_CHQd = (
            q_CQHd.index_copy_(0, self.cells_T, q_THd).unflatten(0, (self.num_chunks, -1)).transpose(1, 2)
        )
        grouped = q_THd.shape[1] != k_TKd.shape[1]
        out = F.scaled_dot_product_attention(q_CHQd, k_CKLd, v_CKLd, self.mask_C1QL, enable_gqa=grouped)
        return out.transpose(1, 2).flatten(0, 1)[self.cells_T]


def rows(pages_NsKd: Tensor, tables_RP: Tensor) -> Tensor:
    """Gathered pages as (rows, key heads, places, d)."""
    return pages_NsKd.unflatten(0, tables_RP.shape).flatten(1, 2).transpose(1, 2)
