"""Rotary positions, with or without the norm of each head before: float32 inside, rounded once.

Queries and keys are read where the qkv projection left them, and written side by side. The tables are the
model's: both halves of a row of cos are equal, those of sin opposite, so half of each is read.

Legend: T tokens, h heads (queries, then keys), d head size.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import count_blocks, power_from

PAIRS = 1024  # that turn in one program of four warps: sixteen bytes a load in 16-bit numbers


def rotate(x_Thd: Tensor, cos_Td: Tensor, sin_Td: Tensor) -> Tensor:
    """Turn the two halves of every head: (a, b) -> (a cos - b sin, b cos + a sin)."""
    return Rotate.apply(x_Thd, cos_Td, sin_Td)


def norm_rotate(
    x_Thd: Tensor,
    cos_Td: Tensor,
    sin_Td: Tensor,
    q_scale_d: Tensor,
    k_scale_d: Tensor,
    queries: int,
    eps: float,
) -> Tensor:
    """The first `queries` heads normed and scaled by `q_scale_d`, the others by `k_scale_d`; then turned."""
    return NormRotate.apply(x_Thd, cos_Td, sin_Td, q_scale_d, k_scale_d, queries, eps)


class Rotate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_Thd: Tensor, cos_Td: Tensor, sin_Td: Tensor) -> Tensor:
        ctx.save_for_backward(cos_Td, sin_Td)
        return turn(x_Thd, cos_Td, sin_Td)

    @staticmethod
    def backward(ctx: Any, grad_Thd: Tensor) -> tuple[Tensor | None, ...]:
        return turn(grad_Thd, *ctx.saved_tensors, direction=-1.0), None, None


class NormRotate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x_Thd: Tensor,
        cos_Td: Tensor,
        sin_Td: Tensor,
        q_scale_d: Tensor,
        k_scale_d: Tensor,
        queries: int,
        eps: float,
    ) -> Tensor:
        ctx.save_for_backward(x_Thd, cos_Td, sin_Td, q_scale_d, k_scale_d)
        ctx.queries, ctx.eps = queries, eps
        return turn(x_Thd, cos_Td, sin_Td, norm=(q_scale_d, k_scale_d, queries, eps))

    @staticmethod
    def backward(ctx: Any, grad_Thd: Tensor) -> tuple[Tensor | None, ...]:
        """Turn back, then through the norm as PyTorch knows it, computed anew."""
        x_Thd, cos_Td, sin_Td, *scales = ctx.saved_tensors
        turned_back = turn(grad_Thd, cos_Td, sin_Td, direction=-1.0)
        sizes = (ctx.queries, x_Thd.shape[1] - ctx.queries)
        x_grads, scale_grads = [], []
        for x, grad, scale_d in zip(x_Thd.split(sizes, 1), turned_back.split(sizes, 1), scales, strict=True):
            x, scale_d = x.detach().requires_grad_(), scale_d.detach().requires_grad_()
            with torch.enable_grad():
                normed = F.rms_norm(x, scale_d.shape, scale_d, ctx.eps)
            x_grad, scale_grad = torch.autograd.grad(normed, (x, scale_d), grad)
            x_grads.append(x_grad)
            scale_grads.append(scale_grad)
        return torch.cat(x_grads, 1), None, None, *scale_grads, None, None


def turn(
    x_Thd: Tensor,
    cos_Td: Tensor,
    sin_Td: Tensor,
    *,
    direction: float = 1.0,
    norm: tuple[Tensor | None, Tensor | None, int, float] = (None, None, 0, 0.0),
) -> Tensor:
    """One launch; `direction` -1 turns the other way, `norm` is (q_scale_d, k_scale_d, queries, eps)."""
    if x_Thd.stride(2) != 1:
        x_Thd = x_Thd.contiguous()
    tokens, heads, size = x_Thd.shape
    out_Thd = x_Thd.new_empty(x_Thd.shape)
    width = power_from(size // 2)
    block = min(max(PAIRS // width, 1), power_from(heads))
    if out_Thd.numel():
        turn_kernel[(tokens, count_blocks(heads, block))](
            x_Thd,
            cos_Td.contiguous(),
            sin_Td.contiguous(),
            out_Thd,
            *norm,
            direction,
            heads,
            size // 2,
            x_Thd.stride(0),
            x_Thd.stride(1),
            HEADS=block,
            WIDTH=width,
        )
    return out_Thd


@triton.jit
def turn_kernel(
    x,
    cos_table,
    sin_table,
    out,
    q_scale,  # None: no norm
    k_scale,
    queries,
    eps,
    direction,
    num_heads,
    half,
    token_stride,
    head_stride,
    HEADS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    heads = tl.program_id(1) * HEADS + tl.arange(0, HEADS)[:, None]
    pairs = tl.arange(0, WIDTH)[None, :]
    inside = (heads < num_heads) & (pairs < half)

    source = x + token * token_stride + heads * head_stride + pairs
    a = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(source + half, mask=inside, other=0.0).to(tl.float32)
    if q_scale is not None:
        norm = tl.rsqrt(tl.sum(a * a + b * b, axis=1, keep_dims=True) / (2 * half) + eps)
        a = a * norm * scales(q_scale, k_scale, heads < queries, pairs, pairs < half)
        b = b * norm * scales(q_scale + half, k_scale + half, heads < queries, pairs, pairs < half)

    angles = token * 2 * half + pairs
    cos = tl.load(cos_table + angles, mask=pairs < half, other=0.0).to(tl.float32)
    # the right half of the sines: the left one has their signs turned
    sin = tl.load(sin_table + angles + half, mask=pairs < half, other=0.0).to(tl.float32) * direction
    goal = out + token * num_heads * 2 * half + heads * 2 * half + pairs
    tl.store(goal, a * cos - b * sin, mask=inside)
    tl.store(goal + half, b * cos + a * sin, mask=inside)


@triton.jit
def scales(q_scale, k_scale, is_query, columns, inside):
    """Of each head: the queries' or the keys'."""
    for_queries = tl.load(q_scale + columns, mask=inside, other=0.0).to(tl.float32)
    for_keys = tl.load(k_scale + columns, mask=inside, other=0.0).to(tl.float32)
    return tl.where(is_query, for_queries, for_keys)
