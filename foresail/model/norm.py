"""RMSNorm: each row divided by its root mean square, each column scaled by a weight, which sets the dtype."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foresail.model.kernels import available


class RMSNorm(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x_TD: Tensor) -> Tensor:
        if available.can_fuse(x_TD):
            from foresail.model.kernels import norm

            return norm.rms_norm(x_TD, self.weight, self.eps)
        out_TD = F.rms_norm(x_TD, self.weight.shape, self.weight.to(x_TD.dtype), self.eps)
        return out_TD.to(self.weight.dtype)

    def branch(self, x_TD: Tensor) -> tuple[Tensor, Tensor]:
        """x, for the residual stream, and its norm; on a GPU one kernel adds up their gradients."""
        if available.can_fuse(x_TD):
            from foresail.model.kernels import norm

            return norm.branch(x_TD, self.weight, self.eps)
        return x_TD, self(x_TD)
