"""The gated MLP: down(silu(gate(x)) * up(x)), where gate and up are one matrix.

Legend: T tokens, D hidden size, I inner width.
"""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from foresail.model.kernels import available
from foresail.model.linear import Linear
from foresail.model.output import Output
from foresail.model.recomputed import Recompute


class MLP(nn.Module):
    """x + the layer's output; the sum may take the place of x."""

    def __init__(self, hidden_size: int, inner_size: int) -> None:
        super().__init__()
        self.gate_up = Linear(hidden_size, 2 * inner_size, bias=False)
        self.down = Linear(inner_size, hidden_size, bias=False)

    def forward(self, x_TD: Tensor, normed_TD: Tensor, recomputed: Recompute) -> Output[Tensor]:
        gate_up_T2I = self.gate_up(normed_TD)
        inner_TI = silu_mul(gate_up_T2I)
        with recomputed(inner_TI, silu_mul, gate_up_T2I):
            return Output(self.down.add_to(x_TD, inner_TI))


def silu_mul(gate_up_T2I: Tensor) -> Tensor:
    """Gate is the left half, up the right."""
    if available.can_fuse(gate_up_T2I):
        from foresail.model.kernels import gated

        return gated.silu_mul(gate_up_T2I)
    gate_TI, up_TI = gate_up_T2I.chunk(2, dim=-1)
    return F.silu(gate_TI) * up_TI
