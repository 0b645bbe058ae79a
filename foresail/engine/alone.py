"""Attention over the cache for a CPU in batch-invariant mode: every token by itself, over exactly its own context.

A padded rectangle is faster, but its width is that of the longest row, and with the width the order of the sums
changes. Here prefill and decoding give a token the same bits, beside any others, in any division.

Legend: T tokens, P pages per row, H query heads, K key/value heads, G query heads per key head, L tokens of one
context, d head size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.engine.cache import KVCache


class AloneAttention:
    """`contexts` says how many places of its row's pages each token sees, itself included."""

    def __init__(self, cache: KVCache, tables_TP: Tensor, places_T: Tensor, contexts: list[int]) -> None:
        self.cache, self.places_T, self.contexts = cache, places_T, contexts
        page_size = cache.keys.shape[2]
        self.pages = [
            pages_P[: -(-length // page_size)] for pages_P, length in zip(tables_TP, contexts, strict=True)
        ]

    def keep(self, layer: int, k_TKd: Tensor, v_TKd: Tensor) -> None:
        self.cache.write(layer, self.places_T, k_TKd, v_TKd)

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        self.keep(layer, k_TKd, v_TKd)
        # fresh copies: how a row lies in memory can change the order of the sums, too
        q_TKGd = q_THd.unflatten(1, (k_TKd.shape[1], -1))
        return torch.cat(
            [
                F.scaled_dot_product_attention(q_1KGd.clone(), *self.context(layer, pages_P, length))
                for q_1KGd, pages_P, length in zip(q_TKGd.split(1), self.pages, self.contexts, strict=True)
            ]
        ).flatten(1, 2)

    def context(self, layer: int, pages_P: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Keys and values of one row, as (1, key heads, L, d)."""
        sides = (side[layer].index_select(0, pages_P) for side in (self.cache.keys, self.cache.values))
        k_1KLd, v_1KLd = (side.flatten(0, 1)[:length].transpose(0, 1)[None] for side in sides)
        return k_1KLd, v_1KLd
