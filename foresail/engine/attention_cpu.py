"""Attention over the paged KV cache in plain PyTorch, for a CPU.

Legend: T tokens, E entries, C chunks, P pages per row, N pages, L places per row, Q the most new tokens of a
chunk, H query heads, K key/value heads, G query heads per key head, d head size.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.engine.cache import KVCache


class EntryAttention:
    """One token per entry over the first `contexts_E` places of its row, its own included."""

    def __init__(self, cache: KVCache, tables_EP: Tensor, places_T: Tensor, contexts_E: Tensor) -> None:
        self.cache, self.tables_EP, self.places_T = cache, tables_EP, places_T
        page_size = cache.keys.shape[2]
        hidden_EL = torch.arange(tables_EP.shape[1] * page_size) >= contexts_E[:, None]
        # An additive mask hides the unused end of a page, which may hold any finite number.
        self.mask_E11L = torch.zeros(hidden_EL.shape, dtype=cache.keys.dtype)
        self.mask_E11L = self.mask_E11L.masked_fill_(hidden_EL, -torch.inf)[:, None, None]

    def write(self, layer: int, k_EKd: Tensor, v_EKd: Tensor) -> None:
        self.cache.write(layer, self.places_T, k_EKd, v_EKd)

    def __call__(self, layer: int, q_EHd: Tensor, k_EKd: Tensor, v_EKd: Tensor) -> Tensor:
        self.write(layer, k_EKd, v_EKd)
        k_EKLd, v_EKLd = (
            rows(part, self.tables_EP) for part in self.cache.gather(layer, self.tables_EP.flatten())
        )
        # The query heads that share a key head stand as rows of one query: nothing is repeated.
        q_EKGd = q_EHd.unflatten(1, (k_EKd.shape[1], -1))
        return F.scaled_dot_product_attention(q_EKGd, k_EKLd, v_EKLd, attn_mask=self.mask_E11L).flatten(1, 2)


class ChunkAttention:
    """New tokens of several contexts over their cached tokens and themselves."""

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

    def write(self, layer: int, k_TKd: Tensor, v_TKd: Tensor) -> None:
        self.cache.write(layer, self.places_T, k_TKd, v_TKd)

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        self.write(layer, k_TKd, v_TKd)
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


class PerTokenAttention:
    """Batch-invariant mode: one token at a time over the first `contexts` places of its row, its own included.

    A padded rectangle is faster, but the order of its sums changes with its width, the longest row's. Here prefill
    and decoding give a token the same bits in any batch.
    """

    def __init__(self, cache: KVCache, tables_TP: Tensor, places_T: Tensor, contexts: list[int]) -> None:
        self.cache, self.places_T, self.contexts = cache, places_T, contexts
        page_size = cache.keys.shape[2]
        self.pages = [
            pages_P[: -(-length // page_size)] for pages_P, length in zip(tables_TP, contexts, strict=True)
        ]

    def write(self, layer: int, k_TKd: Tensor, v_TKd: Tensor) -> None:
        self.cache.write(layer, self.places_T, k_TKd, v_TKd)

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        self.write(layer, k_TKd, v_TKd)
        # fresh copies: the memory layout can change the order of the sums, too
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
