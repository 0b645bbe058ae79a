"""Packed tokens as a padded rectangle, a row for each sequence, for attention where no kernel reads them packed.

Legend: T tokens, S sequences, L the longest, H query heads, K key/value heads, h any heads, d head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


class PaddedAttention:
    """Lengths [1, 3]: token 0 goes to the first row, tokens 1 to 3 to the second, and two cells stay zero."""

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        lengths_S = torch.tensor(lengths)
        self.shape = len(lengths), int(lengths_S.max())
        rows_T = torch.repeat_interleave(torch.arange(len(lengths)), lengths_S)
        places_T = torch.arange(len(rows_T)) - (lengths_S.cumsum(0) - lengths_S)[rows_T]
        self.cells_T = (rows_T * self.shape[1] + places_T).to(device)

    def attend(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        """Every sequence over itself."""
        q, k, v = (self.pad(x) for x in (q_THd, k_TKd, v_TKd))
        return self.unpad(
            F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        )

    def pad(self, x_Thd: Tensor) -> Tensor:
        """(T, h, d) -> (S, h, L, d)."""
        padded = x_Thd.new_zeros(self.shape[0] * self.shape[1], *x_Thd.shape[1:])
        padded = padded.index_copy(0, self.cells_T, x_Thd)
        return padded.unflatten(0, self.shape).transpose(1, 2)

    def unpad(self, x_ShLd: Tensor) -> Tensor:
        """(S, h, L, d) -> (T, h, d)."""
        return x_ShLd.transpose(1, 2).flatten(0, 1).index_select(0, self.cells_T)
