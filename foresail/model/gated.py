"""The gate of the MLP: silu(gate) * up, where one projection gave both."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor

from foresail.model.kernels import available


def silu_mul(gate_up_T2I: Tensor) -> Tensor:
    """Gate is the left half, up the right."""
    if available.can_fuse(gate_up_T2I):
        from foresail.model.kernels import gated

        return gated.silu_mul(gate_up_T2I)
    gate_TI, up_TI = gate_up_T2I.chunk(2, dim=-1)
    return F.silu(gate_TI) * up_TI
