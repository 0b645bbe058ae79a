"""Attention for training: sequences packed end to end, none of which sees another.

On CUDA PyTorch's variable-length flash kernel reads the packed layout as it is. Elsewhere the tokens
are spread into a padded rectangle for this one operation; everything else in the model stays packed.
"""

from __future__ import annotations

import inspect
from functools import cache, partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


@cache
def flash_kernel() -> Any:
    """Causal attention over packed sequences, or None where PyTorch has none yet (before 2.10).

    Imported when first needed: it brings in PyTorch's compiler, a second that CPU commands would lose.
    """
    try:
        from torch.nn.attention.varlen import varlen_attn
    except ImportError:
        return None
    # 2.10 says is_causal, later ones take a window: all of the past, nothing of the future
    windowed = "window_size" in inspect.signature(varlen_attn).parameters
    causal: dict[str, Any] = {"window_size": (-1, 0)} if windowed else {"is_causal": True}
    return partial(varlen_attn, **causal)


class PackedAttention:
    """`attend` for one packed batch; build it once per forward and hand it to the model."""

    def __init__(self, starts_S1: Tensor) -> None:
        self.starts_S1 = starts_S1.to(torch.int32)
        lengths = starts_S1.diff()
        self.num_sequences, self.longest = lengths.numel(), int(lengths.max())
        rows = torch.repeat_interleave(torch.arange(self.num_sequences, device=lengths.device), lengths)
        columns = torch.arange(rows.numel(), device=lengths.device) - starts_S1[rows]
        self.cells_T = rows * self.longest + columns

    def __call__(self, layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        half = q_THd.dtype in (torch.bfloat16, torch.float16)
        if q_THd.is_cuda and half and q_THd.shape[-1] % 8 == 0 and flash_kernel() is not None:
            return self._flash(q_THd, k_TKd, v_TKd)
        return self._padded(q_THd, k_TKd, v_TKd)

    def _flash(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        repeat = q_THd.shape[1] // k_TKd.shape[1]
        k_THd, v_THd = k_TKd.repeat_interleave(repeat, 1), v_TKd.repeat_interleave(repeat, 1)
        starts, longest = self.starts_S1, self.longest
        return flash_kernel()(q_THd.contiguous(), k_THd, v_THd, starts, starts, longest, longest)

    def _padded(self, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
        q, k, v = (self._spread(x) for x in (q_THd, k_TKd, v_TKd))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=q.shape[1] != k.shape[1])
        return out.transpose(1, 2).flatten(0, 1)[self.cells_T]

    def _spread(self, x_Thd: Tensor) -> Tensor:
        """Packed tokens -> (sequences, heads, longest, d); the cells past a sequence's end stay zero."""
        padded = x_Thd.new_zeros(self.num_sequences * self.longest, *x_Thd.shape[1:])
        padded = padded.index_copy(0, self.cells_T, x_Thd)
        return padded.unflatten(0, (self.num_sequences, self.longest)).transpose(1, 2)
