"""The float32 master of a bfloat16 weight: the weight itself, and the sixteen bits that are missing.

A bfloat16 near 0.1 can only move by 0.0005, and an update moves it by the learning rate, say 0.00001. A master that
began on the weight itself would take 25 updates to show any of it in the model. So it begins anywhere among the
numbers that round to the weight, by chance: of a thousand weights some twenty show the first update, and the model
moves by as much as it should.

Legend: N numbers of one weight.
"""

from __future__ import annotations

import torch
from torch import Tensor

HALF = 0x8000  # between two neighbours


def draw_low(weight: Tensor, seed: int) -> Tensor:
    """Sixteen bits for each number, as likely below the weight as above. Those of a zero are zeros."""
    if weight.dtype != torch.bfloat16:
        raise ValueError(f"8-bit states go with bfloat16 or float32 weights, not with {weight.dtype}")
    generator = torch.Generator(weight.device).manual_seed(seed)
    low = torch.empty_like(weight, dtype=torch.int16)
    return low.random_(1 - HALF, HALF, generator=generator).masked_fill_(weight == 0, 0)


def split(master_N: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest bfloat16, the greater of two equally near, and what the bits differ by."""
    bits_N = master_N.view(torch.int32)
    high_N = (bits_N + HALF) >> 16
    return high_N.to(torch.int16).view(torch.bfloat16), (bits_N - (high_N << 16)).to(torch.int16)


def join(weight: Tensor, low: Tensor) -> Tensor:
    return ((weight.view(torch.int16).to(torch.int32) << 16) + low.to(torch.int32)).view(torch.float32)
