"""Attention of rows of equal length by cuDNN's kernels, which are faster than those for unequal lengths.

cuDNN makes a plan for every new size, which takes longer than a step. So it gets only rows of pretraining, whose
sizes recur in every micro-batch. Its gradients are not deterministic.

Legend: T tokens, R rows, L tokens of a row, H query heads, K key/value heads, d head size.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

WHOLE = 1024  # tokens: a row has a multiple of them
BACKENDS = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION]  # the first that can


def can_attend_rows(lengths: Sequence[int]) -> bool:
    """[4096, 4096] -> True; [4096, 2048], [1000, 1000], and all where a run must be deterministic -> False."""
    equal = lengths[0] % WHOLE == 0 and all(length == lengths[0] for length in lengths)
    return equal and not torch.are_deterministic_algorithms_enabled()


def attend_rows(q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor, length: int) -> Tensor:
    """Each token over its own row's past and itself."""
    q_RHLd, k_RKLd, v_RKLd = (x.unflatten(0, (-1, length)).transpose(1, 2) for x in (q_THd, k_TKd, v_TKd))
    with sdpa_kernel(BACKENDS, set_priority=True):
        out_RHLd = F.scaled_dot_product_attention(q_RHLd, k_RKLd, v_RKLd, is_causal=True, enable_gqa=True)
    return out_RHLd.transpose(1, 2).flatten(0, 1)
