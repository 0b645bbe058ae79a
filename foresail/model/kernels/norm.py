"""RMSNorm and its gradient, one kernel each: float32 inside, rounded once.

A row stays in its program's registers from the sum of squares to the result, so its bits are the same in any batch.

Legend: T tokens, D hidden size, P programs.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import power_from

THREAD_COLUMNS = 16  # two loads of sixteen bytes in 16-bit numbers
MAX_WARPS = 16
ALL_WARPS = 4096  # of the gradient's programs, each with its own sum for the weight: a large GPU is busy


def rms_norm(x_TD: Tensor, weight_D: Tensor, eps: float) -> Tensor:
    """x / sqrt(mean(x^2) + eps) * weight, in each row."""
    return RmsNorm.apply(x_TD, weight_D, eps)[1]


def branch(x_TD: Tensor, weight_D: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """x, for the residual stream, and its norm: the kernel of the norm's gradient adds that of the stream."""
    return RmsNorm.apply(x_TD, weight_D, eps)


class RmsNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_TD: Tensor, weight_D: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        stream_TD, x_TD = x_TD, x_TD.contiguous()
        tokens, width = x_TD.shape
        out_TD = torch.empty_like(x_TD, dtype=weight_D.dtype)
        scales_T = x_TD.new_empty(tokens, dtype=torch.float32)
        if tokens:
            norm_kernel[(tokens,)](x_TD, weight_D, out_TD, scales_T, eps, width, **row_layout(width))
        ctx.save_for_backward(x_TD, weight_D, scales_T)
        return stream_TD, out_TD

    @staticmethod
    def backward(
        ctx: Any, stream_grad_TD: Tensor | None, grad_TD: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None, None]:
        if grad_TD is None:
            return stream_grad_TD, None, None
        x_TD, weight_D, scales_T = ctx.saved_tensors
        tokens, width = x_TD.shape
        out_TD = torch.empty_like(x_TD)
        layout = row_layout(width)
        most_parts = ALL_WARPS // layout["num_warps"]
        parts_PD = x_TD.new_empty(min(tokens, most_parts), width, dtype=torch.float32)
        if tokens:
            norm_gradient_kernel[(len(parts_PD),)](
                x_TD,
                weight_D,
                scales_T,
                grad_TD.contiguous(),
                None if stream_grad_TD is None else stream_grad_TD.contiguous(),
                out_TD,
                parts_PD,
                tokens,
                width,
                **layout,
            )
        return out_TD, parts_PD.sum(0).to(weight_D.dtype), None


def row_layout(width: int) -> dict[str, int]:
    """By the width alone: the order of a row's sum must not depend on the batch."""
    block = power_from(width)
    return {"BLOCK": block, "num_warps": min(max(block // (32 * THREAD_COLUMNS), 1), MAX_WARPS)}


@triton.jit
def norm_kernel(x, weight, out, scales, eps, width, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    numbers = tl.load(x + row * width + columns, mask=inside, other=0.0).to(tl.float32)
    # before the sum, so that both loads are under way at once
    factors = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(numbers * numbers, axis=0) / width + eps)
    tl.store(scales + row, scale)
    tl.store(out + row * width + columns, numbers * scale * factors, mask=inside)


@triton.jit(do_not_specialize=["tokens"])
def norm_gradient_kernel(
    x, weight, scales, grad, stream_grad, out, parts, tokens, width, BLOCK: tl.constexpr
):
    """Every P-th row, and what those rows say of the weight; `stream_grad` is None where x itself was not used
    further.
    """
    program = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    inside = columns < width
    factors = tl.load(weight + columns, mask=inside, other=0.0).to(tl.float32)
    part = tl.full((BLOCK,), 0.0, tl.float32)
    row = program
    while row < tokens:
        start = row * width
        scale = tl.load(scales + row)
        normed = tl.load(x + start + columns, mask=inside, other=0.0).to(tl.float32) * scale
        slope = tl.load(grad + start + columns, mask=inside, other=0.0).to(tl.float32)
        total = tl.full((BLOCK,), 0.0, tl.float32)
        if stream_grad is not None:
            total = tl.load(stream_grad + start + columns, mask=inside, other=0.0).to(tl.float32)
        part += slope * normed
        # what would change the row's length alone is taken out: the norm undoes it
        slope *= factors
        along = tl.sum(slope * normed, axis=0) / width
        total += (slope - normed * along) * scale
        tl.store(out + start + columns, total, mask=inside)
        row += tl.num_programs(0)
    tl.store(parts + program * width + columns, part, mask=inside)
