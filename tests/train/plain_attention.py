"""Attention of one sequence written out head by head: the reference for packing and kernels."""

from __future__ import annotations

import torch
from torch import Tensor


def plain_attention(layer: int, q_THd: Tensor, k_TKd: Tensor, v_TKd: Tensor) -> Tensor:
    num_tokens, num_heads, head_dim = q_THd.shape
    shared = num_heads // k_TKd.shape[1]
    rows = []
    for head in range(num_heads):
        q, k, v = q_THd[:, head], k_TKd[:, head // shared], v_TKd[:, head // shared]
        scores = q @ k.T / head_dim**0.5
        future = torch.ones(num_tokens, num_tokens).triu(1).bool()
        rows.append(scores.masked_fill(future, float("-inf")).softmax(-1) @ v)
    return torch.stack(rows, dim=1)
