"""The routed experts: each token passes through a few of many small gated MLPs; no token is dropped.

    choice = router(normed_TD)
    out_TD = experts(normed_TD, choice.weights_TA, sort_by_expert(choice.experts_TA, 48), recomputed)

Tokens are sorted by expert, so that every expert multiplies one block of rows. Nothing waits for the host on a
GPU but backward passes in other dtypes than bfloat16, or in batch-invariant mode. All experts' matrices of one
kind are one parameter, one below the other.

Legend: T tokens, A experts of a token, P = T A pairs of both, E experts, D hidden size, I inner width.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from foresail.model.kernels import available
from foresail.model.linear import is_batch_invariant, linear
from foresail.model.mlp import silu_mul
from foresail.model.recomputed import Recompute
from foresail.recipe.shape.model_shape import Experts as ExpertShape

MAX_DECODED = 4096  # pairs up to which reading the weights takes the time


class ByExpert(NamedTuple):
    """Pairs of token and expert, those of the first expert first."""

    order_P: Tensor  # the pair at each place
    place_P: Tensor  # the place of each pair
    ends_E: Tensor  # where those of each expert end

    @property
    def counts_E(self) -> Tensor:
        return self.ends_E.diff(prepend=self.ends_E.new_zeros(1))


def sort_by_expert(experts_TA: Tensor, num_experts: int) -> ByExpert:
    """[[1, 0], [1, 2]] -> order 1, 0, 2, 3; ends 1, 3, 4."""
    if experts_TA.is_cuda and available.has_triton():
        from foresail.model.kernels import pairs

        return ByExpert(*pairs.sort_pairs(experts_TA, num_experts))
    experts_P, order_P = experts_TA.flatten().sort(stable=True)
    each_E = torch.arange(num_experts, device=experts_P.device)
    every_P = torch.arange(len(order_P), device=order_P.device)
    place_P = torch.empty_like(order_P).scatter_(0, order_P, every_P)
    return ByExpert(order_P, place_P, torch.searchsorted(experts_P, each_E, right=True))


class Experts(nn.Module):
    def __init__(self, hidden_size: int, shape: ExpertShape) -> None:
        super().__init__()
        self.num_experts, self.num_active = shape.routed, shape.active
        self.gate_up = nn.Parameter(torch.empty(shape.routed * 2 * shape.inner_size, hidden_size))
        self.down = nn.Parameter(torch.empty(shape.routed * hidden_size, shape.inner_size))

    def forward(
        self, normed_TD: Tensor, weights_TA: Tensor, by_expert: ByExpert, recomputed: Recompute
    ) -> Tensor:
        """The weighted sum of the outputs of each token's experts, float32."""
        if is_decoding(normed_TD, weights_TA):
            return self._decode(normed_TD, weights_TA, by_expert)
        normed_PD = spread(normed_TD, by_expert, self.num_active)
        gate_up_P2I = grouped_linear(normed_PD, self._each(self.gate_up), by_expert.ends_E)
        inner_PI = silu_mul(gate_up_P2I)
        with recomputed(inner_PI, silu_mul, gate_up_P2I):
            out_PD = grouped_linear(inner_PI, self._each(self.down), by_expert.ends_E)
        return combine(out_PD, weights_TA, by_expert)

    def _decode(self, normed_TD: Tensor, weights_TA: Tensor, by_expert: ByExpert) -> Tensor:
        """The same in two kernels, for few tokens: the weights are read once, and little else."""
        from foresail.model.kernels import grouped

        order_P, _, ends_E = by_expert
        inner_PI = grouped.gated_products(
            normed_TD, self._each(self.gate_up), order_P, ends_E, self.num_active
        )
        return combine(grouped.products(inner_PI, self._each(self.down), ends_E), weights_TA, by_expert)

    def _each(self, weight: Tensor) -> Tensor:
        return weight.unflatten(0, (self.num_experts, -1))


def is_decoding(normed_TD: Tensor, weights_TA: Tensor) -> bool:
    few = weights_TA.numel() <= MAX_DECODED or normed_TD.dtype == torch.float32
    return few and not torch.is_grad_enabled() and available.can_fuse(normed_TD) and not is_batch_invariant()


def spread(x_TD: Tensor, by_expert: ByExpert, num_active: int) -> Tensor:
    """A row for every pair, its token's."""
    if available.can_fuse(x_TD):
        from foresail.model.kernels import pairs

        return pairs.spread(x_TD, by_expert.order_P, by_expert.place_P, num_active)
    return x_TD[by_expert.order_P // num_active]


def combine(out_PD: Tensor, weights_TA: Tensor, by_expert: ByExpert) -> Tensor:
    """The weighted sum of each token's pairs, float32."""
    if available.can_fuse(out_PD):
        from foresail.model.kernels import pairs

        return pairs.combine(out_PD, weights_TA, by_expert.order_P, by_expert.place_P)
    out_TAD = out_PD[by_expert.place_P].unflatten(0, weights_TA.shape).float()
    return (out_TAD * weights_TA.unsqueeze(-1)).sum(1)


def grouped_linear(x_PK: Tensor, weight_ENK: Tensor, ends_E: Tensor) -> Tensor:
    """Rows up to ends[0] times the first matrix, from there to ends[1] times the second, and so on."""
    if available.can_fuse(x_PK):
        if is_batch_invariant() or not can_group(x_PK, weight_ENK):
            from foresail.model.kernels import grouped

            return grouped.invariant_products(x_PK, weight_ENK, ends_E)
        return F.grouped_mm(x_PK, weight_ENK.transpose(1, 2), offs=ends_E)
    counts = ends_E.diff(prepend=ends_E.new_zeros(1)).tolist()
    groups = zip(x_PK.split(counts), weight_ENK.unbind(0), strict=True)
    return torch.cat([linear(x_nK, weight_NK) for x_nK, weight_NK in groups if len(x_nK)])


def can_group(x_PK: Tensor, weight_ENK: Tensor) -> bool:
    """What PyTorch's grouped product takes: bfloat16, and rows of whole 16 bytes."""
    return x_PK.dtype == torch.bfloat16 and all(size % 8 == 0 for size in weight_ENK.shape[1:])
