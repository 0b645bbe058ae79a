"""Pairs of token and expert: sorted by expert, tokens spread to their pairs, and pairs summed back.

    order_P, place_P, ends_E = sort_pairs(experts_TA, num_experts)
    x_PD = spread(x_TD, order_P, place_P, num_active)      # a row for every pair, those of the first expert first
    out_TD = combine(out_PD, weights_TA, order_P, place_P) # float32

Nothing waits for the host, and no sum depends on who comes first.

Legend: T tokens, A experts of a token, P = T A pairs, E experts, D hidden size.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import count_blocks, power_from

SCANNED = 1024  # pairs that a program reads together
COLUMNS = 1024  # of one row


def sort_pairs(experts_TA: Tensor, num_experts: int) -> tuple[Tensor, Tensor, Tensor]:
    """Which pair stands at each place, where each pair stands, and where each expert's end; int32."""
    count, device = experts_TA.numel(), experts_TA.device
    order_P, place_P = torch.empty(2, count, dtype=torch.int32, device=device)
    ends_E = torch.empty(num_experts, dtype=torch.int32, device=device)
    block = min(SCANNED, power_from(count))
    sort_kernel[(num_experts,)](experts_TA.contiguous(), order_P, place_P, ends_E, count, BLOCK=block)
    return order_P, place_P, ends_E


@triton.jit(do_not_specialize=["count"])
def sort_kernel(experts, order, place, ends, count, BLOCK: tl.constexpr):
    """One program for each expert: it counts the pairs of experts before it, then places its own in their order."""
    mine = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    before = tl.full((BLOCK,), 0, tl.int32)
    for start in range(0, count, BLOCK):
        pairs = start + lanes
        others = tl.load(experts + pairs, mask=pairs < count, other=2147483647).to(tl.int32)
        before += (others < mine).to(tl.int32)
    first = tl.sum(before, 0)
    for start in range(0, count, BLOCK):
        pairs = start + lanes
        others = tl.load(experts + pairs, mask=pairs < count, other=2147483647).to(tl.int32)
        is_mine = (others == mine).to(tl.int32)
        places = first + tl.cumsum(is_mine, 0) - 1
        tl.store(order + places, pairs, mask=is_mine != 0)
        tl.store(place + pairs, places, mask=is_mine != 0)
        first += tl.sum(is_mine, 0)
    tl.store(ends + mine, first)


def spread(x_TD: Tensor, order_P: Tensor, place_P: Tensor, num_active: int) -> Tensor:
    return Spread.apply(x_TD, order_P, place_P, num_active)


class Spread(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_TD: Tensor, order_P: Tensor, place_P: Tensor, num_active: int) -> Tensor:
        ctx.save_for_backward(place_P)
        ctx.num_active = num_active
        return x_TD[order_P // num_active]

    @staticmethod
    def backward(ctx: Any, grad_PD: Tensor) -> tuple[Tensor, None, None, None]:
        (place_P,) = ctx.saved_tensors
        return sum_pairs(grad_PD.contiguous(), None, place_P, ctx.num_active, grad_PD.dtype), None, None, None


def combine(out_PD: Tensor, weights_TA: Tensor, order_P: Tensor, place_P: Tensor) -> Tensor:
    """The weighted sum over each token's experts."""
    return Combine.apply(out_PD, weights_TA, order_P, place_P)


class Combine(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, out_PD: Tensor, weights_TA: Tensor, order_P: Tensor, place_P: Tensor) -> Tensor:
        out_PD, weights_TA = out_PD.contiguous(), weights_TA.contiguous()
        ctx.save_for_backward(out_PD, weights_TA, order_P)
        return sum_pairs(out_PD, weights_TA, place_P, weights_TA.shape[1], torch.float32)

    @staticmethod
    def backward(ctx: Any, grad_TD: Tensor) -> tuple[Tensor, Tensor, None, None]:
        out_PD, weights_TA, order_P = ctx.saved_tensors
        grad_PD, grad_TA = torch.empty_like(out_PD), torch.empty_like(weights_TA)
        (pairs, width), block = out_PD.shape, power_from(out_PD.shape[1])
        if pairs:
            combine_gradient_kernel[(pairs,)](
                out_PD,
                weights_TA,
                order_P,
                grad_TD.contiguous(),
                grad_PD,
                grad_TA,
                width,
                weights_TA.shape[1],
                BLOCK=min(COLUMNS, block),
                num_warps=4,
            )
        return grad_PD, grad_TA, None, None


def sum_pairs(
    values_PD: Tensor, weights_TA: Tensor | None, place_P: Tensor, num_active: int, dtype: torch.dtype
) -> Tensor:
    """Summed in float32, in the order of a token's experts."""
    width, tokens = values_PD.shape[1], place_P.numel() // num_active
    out_TD = values_PD.new_empty(tokens, width, dtype=dtype)
    block = min(COLUMNS, power_from(width))
    if out_TD.numel():
        sum_pairs_kernel[(tokens, count_blocks(width, block))](
            values_PD, weights_TA, place_P, out_TD, width, ACTIVE=num_active, BLOCK=block
        )
    return out_TD


@triton.jit
def sum_pairs_kernel(values, weights, place, out, width, ACTIVE: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    sums = tl.full((BLOCK,), 0.0, tl.float32)
    for number in tl.static_range(ACTIVE):
        row = tl.load(place + token * ACTIVE + number).to(tl.int64)
        value = tl.load(values + row * width + columns, mask=inside).to(tl.float32)
        if weights is not None:
            value *= tl.load(weights + token * ACTIVE + number)
        sums += value
    tl.store(out + token * width + columns, sums, mask=inside)


@triton.jit
def combine_gradient_kernel(
    values, weights, order, grad, grad_values, grad_weights, width, active, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    pair = tl.load(order + row).to(tl.int64)
    weight = tl.load(weights + pair)
    products = tl.full((BLOCK,), 0.0, tl.float32)
    for start in range(0, width, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        inside = columns < width
        slope = tl.load(grad + (pair // active) * width + columns, mask=inside, other=0.0).to(tl.float32)
        value = tl.load(values + row * width + columns, mask=inside, other=0.0).to(tl.float32)
        products += slope * value
        tl.store(grad_values + row * width + columns, slope * weight, mask=inside)
    tl.store(grad_weights + pair, tl.sum(products, 0))
