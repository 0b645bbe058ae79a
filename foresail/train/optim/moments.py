"""Both moments of AdamW, a byte for each number.

    mean     sign, 4 bits of exponent, 3 of mantissa   ┐ in blocks of 256 that share a float32 scale
    square   5 bits of exponent, 3 of mantissa         ┘

They are rounded up or down at random, in proportion, so that small changes add up; rounded to the nearest, a
square that falls by 5 % a step would never fall. The random bits are a pure function of the step and the place in
the whole weight: a resumed run goes on bit for bit, and shards that begin at a block get the bits of the whole.

Legend: N numbers of one weight, B blocks of them, L numbers of a block.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from foresail.recipe.estimates.memory import STATE_BLOCK as BLOCK

TOP = 1.875  # the last code: a block is scaled so that its greatest number gets it
MEAN_EXPONENTS, SQUARE_EXPONENTS = 16, 32
MEAN, SQUARE = 0, 1  # which moment, for the random bits


@dataclass(kw_only=True)
class Moments:
    """Both moments of one weight."""

    mean_N: Tensor
    mean_scale_B: Tensor
    square_N: Tensor
    square_scale_B: Tensor


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Of one update of one weight: shrink by `decay`, then move by `rate` x mean / (sqrt(square) + eps)."""

    step: int
    rate: float
    decay: float
    beta1: float
    beta2: float
    eps: float
    square_correction: float


def zero_moments(weight: Tensor) -> Moments:
    blocks = -(-weight.numel() // BLOCK)

    def codes() -> Tensor:
        return torch.zeros(weight.numel(), dtype=torch.uint8, device=weight.device)

    def scales() -> Tensor:
        return torch.zeros(blocks, dtype=torch.float32, device=weight.device)

    return Moments(mean_N=codes(), mean_scale_B=scales(), square_N=codes(), square_scale_B=scales())


# A block of numbers as bytes and a scale. A code is the top of a float's own bits: exponent and three of mantissa.


def quantize(values_N: Tensor, moment: int, step: int, offset: int = 0) -> tuple[Tensor, Tensor]:
    """Codes and scales. A mean's sign is its first bit; a square that is not 0 is never made 0.

    `offset` is the place of the first number in the whole weight, where this is a shard of it.
    """
    values_BL = pad(values_N).view(-1, BLOCK)
    scale_B = values_BL.abs().amax(1) / TOP
    sizes_BL = values_BL.abs() / torch.where(scale_B > 0, scale_B, 1.0)[:, None]
    bits_N = sizes_BL.flatten()[: len(values_N)].view(torch.int32)
    exponents, least = (MEAN_EXPONENTS, 0) if moment == MEAN else (SQUARE_EXPONENTS, 1)
    lowest = (128 - exponents) << 3
    random_N = rounding_bits(offset, len(values_N), moment, step, values_N.device)
    codes_N = ((bits_N + random_N) >> 20) - lowest
    codes_N = torch.where(bits_N > 0, codes_N.clamp(least, 8 * exponents - 1), 0)
    if moment == MEAN:
        codes_N = torch.where(values_N < 0, codes_N + 128, codes_N)
    return codes_N.to(torch.uint8), scale_B


def dequantize(codes_N: Tensor, scale_B: Tensor, moment: int) -> Tensor:
    codes_N = codes_N.to(torch.int32)
    exponents = MEAN_EXPONENTS if moment == MEAN else SQUARE_EXPONENTS
    size_N = codes_N & 127 if moment == MEAN else codes_N
    values_N = torch.where(size_N > 0, ((size_N + ((128 - exponents) << 3)) << 20).view(torch.float32), 0.0)
    values_N = values_N * scale_B.repeat_interleave(BLOCK)[: len(codes_N)]
    return torch.where(codes_N > 127, -values_N, values_N) if moment == MEAN else values_N


def pad(values_N: Tensor) -> Tensor:
    return torch.nn.functional.pad(values_N, (0, -len(values_N) % BLOCK))


def rounding_bits(offset: int, count: int, moment: int, step: int, device: torch.device) -> Tensor:
    """Twenty random bits for each of `count` places from `offset` on."""
    mask = 0xFFFFFFFF
    bits_N = torch.arange(offset, offset + count, dtype=torch.int64, device=device) * 2 + moment
    bits_N = (bits_N ^ (step * 0x9E3779B9 & mask)) & mask
    bits_N = (bits_N ^ (bits_N >> 16)) * 0x85EBCA6B & mask
    bits_N = (bits_N ^ (bits_N >> 13)) * 0xC2B2AE35 & mask
    return ((bits_N ^ (bits_N >> 16)) >> 12).to(torch.int32)
