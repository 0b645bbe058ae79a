"""The paged KV cache and the two ways of attending over it.

Legend: T tokens, B rows, P pages per row, N pages, C pages to copy, L places per row, H query heads, K key/value
heads, G query heads per key head, d head size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.model.attention import PackedAttention
from foresail.recipe.shape import ModelShape


class KVCache:
    """Keys and values of all layers; a place is page * page_size + offset."""

    def __init__(
        self, shape: ModelShape, num_pages: int, page_size: int, dtype: torch.dtype, device: torch.device
    ) -> None:
        size = (shape.num_layers, num_pages, page_size, shape.num_kv_heads, shape.head_dim)
        self.keys = torch.zeros(size, dtype=dtype, device=device)
        self.values = torch.zeros(size, dtype=dtype, device=device)
        self._gathered = torch.empty(2, 0, *size[2:], dtype=dtype, device=device)

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
        sources_C, targets_C = torch.tensor((sources, targets), device=self.keys.device)
        for pages in (self.keys, self.values):
            pages.index_copy_(1, targets_C, pages.index_select(1, sources_C))


class PrefillAttention:
    """Whole sequences from their first token: the trainer's attention, and the cache is filled."""

    def __init__(self, cache: KVCache, starts_S1: Tensor, places_T: Tensor) -> None:
        self.cache, self.places_T = cache, places_T
        self.attend = PackedAttention(starts_S1)

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        self.cache.write(layer, self.places_T, k_TKd, v_TKd)
        return self.attend(layer, q_THd, k_TKd, v_TKd)


class DecodeAttention:
    """One new token per row over that row's pages."""

    def __init__(self, cache: KVCache, tables_BP: Tensor, lengths_B: Tensor) -> None:
        self.cache, self.tables_BP = cache, tables_BP
        page_size = cache.keys.shape[2]
        last_B = lengths_B - 1
        pages_B = tables_BP.gather(1, (last_B // page_size)[:, None]).squeeze(1)
        self.places_B = pages_B * page_size + last_B % page_size
        places_L = torch.arange(tables_BP.shape[1] * page_size, device=tables_BP.device)
        visible_BL = places_L < lengths_B[:, None]
        # An additive mask: the unused tail of a page may hold any finite number, and this hides it.
        self.mask_B11L = torch.zeros(visible_BL.shape, dtype=cache.keys.dtype, device=tables_BP.device)
        self.mask_B11L = self.mask_B11L.masked_fill_(~visible_BL, -torch.inf)[:, None, None]

    def __call__(self, layer: int, q_BHd: Tensor, k_BKd: Tensor, v_BKd: Tensor) -> Tensor:
        self.cache.write(layer, self.places_B, k_BKd, v_BKd)
        pages = self.cache.gather(layer, self.tables_BP.flatten())
        k_BKLd, v_BKLd = (
            part.unflatten(0, self.tables_BP.shape).flatten(1, 2).transpose(1, 2) for part in pages
        )
        # The query heads that share a key head stand as rows of one query: nothing is repeated.
        q_BKGd = q_BHd.unflatten(1, (k_BKd.shape[1], -1))
        return F.scaled_dot_product_attention(q_BKGd, k_BKLd, v_BKLd, attn_mask=self.mask_B11L).flatten(1, 2)
