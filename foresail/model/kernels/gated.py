"""silu(gate) * up and its gradient, one kernel each: float32 inside, rounded once.

Legend: T tokens, I the MLP's inner width.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import count_blocks, power_from

COLUMNS = 1024  # of one row, for a program of four warps: sixteen bytes a load in 16-bit numbers


def silu_mul(gate_up_T2I: Tensor) -> Tensor:
    """Gate is the left half, up the right."""
    return SiluMul.apply(gate_up_T2I)


class SiluMul(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, gate_up_T2I: Tensor) -> Tensor:
        gate_up_T2I = gate_up_T2I.contiguous()
        ctx.save_for_backward(gate_up_T2I)
        tokens, width = gate_up_T2I.shape[0], gate_up_T2I.shape[1] // 2
        out_TI = gate_up_T2I.new_empty(tokens, width)
        if out_TI.numel():
            silu_mul_kernel[grid(out_TI)](gate_up_T2I, out_TI, width, BLOCK=block(width))
        return out_TI

    @staticmethod
    def backward(ctx: Any, grad_TI: Tensor) -> Tensor:
        (gate_up_T2I,) = ctx.saved_tensors
        grad_TI = grad_TI.contiguous()
        width = grad_TI.shape[1]
        out_T2I = torch.empty_like(gate_up_T2I)
        if out_T2I.numel():
            silu_mul_gradient_kernel[grid(grad_TI)](gate_up_T2I, grad_TI, out_T2I, width, BLOCK=block(width))
        return out_T2I


def block(width: int) -> int:
    return min(COLUMNS, power_from(width))


def grid(x_TI: Tensor) -> tuple[int, int]:
    tokens, width = x_TI.shape
    return tokens, count_blocks(width, block(width))


@triton.jit
def silu_mul_kernel(gate_up, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # a long batch of wide rows has more than 2^31 numbers
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    gate = tl.load(gate_up + row * 2 * width + columns, mask=inside).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + columns, mask=inside).to(tl.float32)
    tl.store(out + row * width + columns, gate / (1 + tl.exp(-gate)) * up, mask=inside)


@triton.jit
def silu_mul_gradient_kernel(gate_up, grad, out, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    gate = tl.load(gate_up + row * 2 * width + columns, mask=inside).to(tl.float32)
    up = tl.load(gate_up + row * 2 * width + width + columns, mask=inside).to(tl.float32)
    slope = tl.load(grad + row * width + columns, mask=inside).to(tl.float32)
    sigmoid = 1 / (1 + tl.exp(-gate))
    gate_slope = slope * up * sigmoid * (1 + gate * (1 - sigmoid))
    tl.store(out + row * 2 * width + columns, gate_slope, mask=inside)
    tl.store(out + row * 2 * width + width + columns, slope * gate * sigmoid, mask=inside)
