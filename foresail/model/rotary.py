"""Rotary positions: pairs (i, i + d/2) of each head turn by an angle that grows with the position."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.model.kernels import available
from foresail.recipe.shape import ModelShape, RopeScaling


def rotary_table(shape: ModelShape) -> tuple[Tensor, Tensor]:
    """cos and sin for every position up to the context, float32; sin has the signs that `rotate` wants."""
    exponents = torch.arange(0, shape.head_dim, 2, dtype=torch.float32) / shape.head_dim
    frequencies = 1.0 / shape.rope_theta**exponents
    if shape.rope_scaling is not None:
        frequencies = scale_frequencies(frequencies, shape.rope_scaling)
    angles = torch.outer(torch.arange(shape.max_context, dtype=torch.float32), frequencies)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def scale_frequencies(frequencies: Tensor, scaling: RopeScaling) -> Tensor:
    """Llama 3: long wavelengths are slowed by `factor`, short ones kept, those between blended."""
    wavelengths = 2 * math.pi / frequencies
    turns = scaling.original_context / wavelengths
    blend = (turns - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor)
    blend = blend.clamp(0.0, 1.0)
    return frequencies * (blend + (1 - blend) / scaling.factor)


def rotate(x_Thd: Tensor, cos_Td: Tensor, sin_Td: Tensor) -> Tensor:
    """Turn the two halves of every head: (a, b) -> (a cos - b sin, b cos + a sin)."""
    if available.can_fuse(x_Thd):
        from foresail.model.kernels import rotary

        return rotary.rotate(x_Thd, cos_Td, sin_Td)
    swapped_Thd = x_Thd.roll(x_Thd.shape[-1] // 2, dims=-1)
    return torch.addcmul(x_Thd * cos_Td[:, None], swapped_Thd, sin_Td[:, None])


def norm_rotate(
    x_Thd: Tensor,
    cos_Td: Tensor,
    sin_Td: Tensor,
    q_scale_d: Tensor,
    k_scale_d: Tensor,
    queries: int,
    eps: float,
) -> Tensor:
    """Norm every head, then turn it; the first `queries` heads have one scale, the keys after them another."""
    if available.can_fuse(x_Thd):
        from foresail.model.kernels import rotary

        return rotary.norm_rotate(x_Thd, cos_Td, sin_Td, q_scale_d, k_scale_d, queries, eps)
    keys = x_Thd.shape[1] - queries
    scale_hd = torch.cat((q_scale_d.expand(queries, -1), k_scale_d.expand(keys, -1)))
    return rotate(F.rms_norm(x_Thd, q_scale_d.shape, eps=eps) * scale_hd, cos_Td, sin_Td)
