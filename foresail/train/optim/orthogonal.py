"""The nearest matrix with orthogonal rows or columns, approximately: Muon's update from a momentum.

A matrix U S V' becomes about U V'. Five steps of Newton and Schulz, whose coefficients (Jordan et al.) bring all
singular values, whatever they were, to between 0.7 and 1.2; a better approximation does not train better.

Legend: G matrices, N rows, K columns.
"""

from __future__ import annotations

import torch
from torch import Tensor

COEFFICIENTS = (3.4445, -4.7750, 2.0315)
STEPS = 5
LEAST_NORM = 1e-7  # so that nothing is divided by 0
MAX_NUMBERS = 2**28  # numbers: of hundreds of experts only some are worked on at a time


def orthogonalize(matrices_GNK: Tensor) -> Tensor:
    """Each matrix by itself, in bfloat16 on a GPU; float32 comes back."""
    each = matrices_GNK[0].numel()
    some = matrices_GNK.split(max(1, MAX_NUMBERS // max(1, each)))
    return torch.cat([newton_schulz(part_GNK) for part_GNK in some])


def newton_schulz(matrices_GNK: Tensor) -> Tensor:
    x = matrices_GNK.bfloat16() if matrices_GNK.is_cuda else matrices_GNK
    turned = x.shape[-2] > x.shape[-1]
    if turned:  # products of rows are as small as can be
        x = x.mT
    x = x / x.float().norm(dim=(-2, -1), keepdim=True).clamp(min=LEAST_NORM).to(x.dtype)
    a, b, c = COEFFICIENTS
    for _ in range(STEPS):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return (x.mT if turned else x).to(matrices_GNK.dtype)
