# mypy: allow-untyped-defs
"""One update of one weight in one reading: gradient, master, moments in; weight, low bits, moments out.

Legend: B blocks of a program, L numbers of a block.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

from foresail.model.kernels.sizes import count_blocks
from foresail.train.optim.moments import BLOCK, TOP, Moments, Rates

BLOCKS = 8  # of a program
VARYING = ["count", "offset", "seed", "rate", "decay", "beta1", "beta2", "eps", "square_correction"]


def apply(
    weight: Tensor, low: Tensor | None, gradient: Tensor, moments: Moments, rates: Rates, offset: int
) -> None:
    count = weight.numel()
    assert weight.is_contiguous() and gradient.is_contiguous()
    update_kernel[(count_blocks(count, BLOCK * BLOCKS),)](
        weight,
        low,
        gradient,
        moments.mean_N,
        moments.mean_scale_B,
        moments.square_N,
        moments.square_scale_B,
        count,
        offset,
        rates.step * 0x9E3779B9 & 0xFFFFFFFF,
        rates.rate,
        rates.decay,
        rates.beta1,
        rates.beta2,
        rates.eps,
        rates.square_correction,
        BLOCKS=BLOCKS,
        LENGTH=BLOCK,
        TOP=TOP,
        num_warps=8,
    )


@triton.jit(do_not_specialize=VARYING)
def update_kernel(
    weight,
    low,
    gradient,
    mean,
    mean_scale,
    square,
    square_scale,
    count,
    offset,  # of the first number in the whole weight
    seed,
    rate,
    decay,
    beta1,
    beta2,
    eps,
    square_correction,
    BLOCKS: tl.constexpr,
    LENGTH: tl.constexpr,
    TOP: tl.constexpr,
):
    blocks_B = tl.program_id(0).to(tl.int64) * BLOCKS + tl.arange(0, BLOCKS)
    places_BL = blocks_B[:, None] * LENGTH + tl.arange(0, LENGTH)[None, :]
    numbers_BL = (places_BL + offset) * 2  # of random bits: two for each place in the whole weight
    there_B, there_BL = blocks_B * LENGTH < count, places_BL < count
    slope_BL = tl.load(gradient + places_BL, mask=there_BL, other=0.0)

    mean_scale_B = tl.load(mean_scale + blocks_B, mask=there_B, other=0.0)
    code_BL = tl.load(mean + places_BL, mask=there_BL, other=0).to(tl.int32)
    old_BL = dequantize(code_BL & 127, mean_scale_B, 16)
    old_BL = tl.where(code_BL > 127, -old_BL, old_BL)
    mean_BL = old_BL + (1 - beta1) * (slope_BL - old_BL)

    square_scale_B = tl.load(square_scale + blocks_B, mask=there_B, other=0.0)
    code_BL = tl.load(square + places_BL, mask=there_BL, other=0).to(tl.int32)
    square_BL = dequantize(code_BL, square_scale_B, 32) * beta2 + (1 - beta2) * (slope_BL * slope_BL)

    code_BL, mean_scale_B = quantize(tl.abs(mean_BL), rounding_bits(numbers_BL, seed), 16, 0, TOP)
    code_BL = tl.where(mean_BL < 0, code_BL + 128, code_BL)
    tl.store(mean + places_BL, code_BL.to(tl.uint8), mask=there_BL)
    tl.store(mean_scale + blocks_B, mean_scale_B, mask=there_B)
    code_BL, square_scale_B = quantize(square_BL, rounding_bits(numbers_BL + 1, seed), 32, 1, TOP)
    tl.store(square + places_BL, code_BL.to(tl.uint8), mask=there_BL)
    tl.store(square_scale + blocks_B, square_scale_B, mask=there_B)

    step_BL = rate * mean_BL / (tl.sqrt_rn(square_BL * square_correction) + eps)
    if low is None:
        master_BL = tl.load(weight + places_BL, mask=there_BL, other=0.0)
        tl.store(weight + places_BL, master_BL * decay - step_BL, mask=there_BL)
    else:
        high_BL = tl.load(weight + places_BL, mask=there_BL, other=0.0).to(tl.int16, bitcast=True)
        low_BL = tl.load(low + places_BL, mask=there_BL, other=0)
        bits_BL = (high_BL.to(tl.int32) << 16) + low_BL.to(tl.int32)
        bits_BL = (bits_BL.to(tl.float32, bitcast=True) * decay - step_BL).to(tl.int32, bitcast=True)
        high_BL = (bits_BL + 0x8000) >> 16
        tl.store(weight + places_BL, high_BL.to(tl.int16).to(tl.bfloat16, bitcast=True), mask=there_BL)
        tl.store(low + places_BL, (bits_BL - (high_BL << 16)).to(tl.int16), mask=there_BL)


@triton.jit
def dequantize(code_BL, scale_B, EXPONENTS: tl.constexpr):
    bits_BL = (code_BL + ((128 - EXPONENTS) << 3)) << 20
    return tl.where(code_BL > 0, bits_BL.to(tl.float32, bitcast=True), 0.0) * scale_B[:, None]


@triton.jit
def quantize(size_BL, random_BL, EXPONENTS: tl.constexpr, LEAST: tl.constexpr, TOP: tl.constexpr):
    scale_B = tl.div_rn(tl.max(size_BL, axis=1), TOP)
    divisor_BL = tl.where(scale_B > 0, scale_B, 1.0)[:, None] + tl.zeros_like(size_BL)
    relative_BL = tl.div_rn(size_BL, divisor_BL)
    bits_BL = relative_BL.to(tl.int32, bitcast=True)
    code_BL = ((bits_BL + random_BL) >> 20) - ((128 - EXPONENTS) << 3)
    code_BL = tl.minimum(tl.maximum(code_BL, LEAST), 8 * EXPONENTS - 1)
    return tl.where(bits_BL > 0, code_BL, 0), scale_B


@triton.jit
def rounding_bits(place_BL, seed):
    bits_BL = place_BL.to(tl.uint32) ^ seed.to(tl.uint32)
    bits_BL = (bits_BL ^ (bits_BL >> 16)) * 0x85EBCA6B
    bits_BL = (bits_BL ^ (bits_BL >> 13)) * 0xC2B2AE35
    return ((bits_BL ^ (bits_BL >> 16)) >> 12).to(tl.int32)
