"""Rotary positions: pairs (i, i + d/2) of each head turn by an angle that grows with the position."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from foresail.model.kernels import available
from foresail.recipe.shape.model_shape import ModelShape, RopeScaling


def rotary_table(shape: ModelShape) -> tuple[Tensor, Tensor]:
    """cos and sin for every position up to the context, float32; sin has the signs that `rotate` wants."""
    frequencies = rotary_frequencies(shape.rope_theta, shape.head_dim, shape.rope_scaling)
    angles = torch.outer(torch.arange(shape.max_context, dtype=torch.float32), frequencies)
    cos, sin = angles.cos(), angles.sin()
    if shape.rope_scaling is not None:
        cos, sin = (table * shape.rope_scaling.attention() for table in (cos, sin))
    return torch.cat((cos, cos), dim=-1), torch.cat((-sin, sin), dim=-1)


def rotary_frequencies(theta: float, head_dim: int, scaling: RopeScaling | None = None) -> Tensor:
    """Of every pair of a head, in radians a position.

    In the order of transformers' operations: what one of them rounds off is multiplied by the position.
    """
    periods_d = theta ** (torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    if scaling is None or scaling.type == "dynamic":  # whose base is raised where the context is longer
        return 1.0 / periods_d
    if scaling.type == "linear":
        return 1.0 / periods_d / scaling.factor
    if scaling.type == "llama3":
        kept_d = llama3_share(periods_d, scaling)
    else:
        kept_d = yarn_share(theta, head_dim, scaling)
    return 1.0 / (scaling.factor * periods_d) * (1 - kept_d) + 1.0 / periods_d * kept_d


def llama3_share(periods_d: Tensor, scaling: RopeScaling) -> Tensor:
    """1 for a frequency that stays as it was, 0 for one that is divided, by its turns in the old context."""
    low, high = scaling.low_freq_factor, scaling.high_freq_factor
    assert scaling.original_context is not None and low is not None and high is not None
    turns_d = scaling.original_context / (2 * math.pi * periods_d)
    return ((turns_d - low) / (high - low)).clamp(0.0, 1.0)


def yarn_share(theta: float, head_dim: int, scaling: RopeScaling) -> Tensor:
    """The same, even over the pairs from the one with `beta_fast` turns to the one with `beta_slow`."""
    old_context = scaling.original_context
    assert old_context is not None

    def pair_with(turns: float) -> float:
        return head_dim * math.log(old_context / (2 * math.pi * turns)) / (2 * math.log(theta))

    first, last = pair_with(scaling.beta_fast or 32.0), pair_with(scaling.beta_slow or 1.0)
    if scaling.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, head_dim - 1)
    last = last + 0.001 if first == last else last
    pairs_d = torch.arange(head_dim // 2, dtype=torch.float32)
    return 1.0 - ((pairs_d - first) / (last - first)).clamp(0.0, 1.0)


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
