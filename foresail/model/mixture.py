"""A mixture of experts in the place of an MLP: the routed ones, and those that every token passes through."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor, nn

from foresail.model.experts import ByExpert, Experts, sort_by_expert
from foresail.model.mlp import MLP
from foresail.model.output import Output
from foresail.model.overlap import overlapped
from foresail.model.recomputed import Recompute
from foresail.model.router import EXPERT_LOAD, ExpertChoice, Router
from foresail.recipe.shape.model_shape import Experts as ExpertShape


class MixtureOfExperts(nn.Module):
    """x + the output of each token's experts; the sum may take the place of x."""

    def __init__(self, hidden_size: int, shape: ExpertShape) -> None:
        super().__init__()
        self.router = Router(hidden_size, shape)
        self.experts = Experts(hidden_size, shape)
        # several shared experts are one, as wide as all of them
        self.shared = MLP(hidden_size, shape.shared * shape.inner_size) if shape.shared else None

    def forward(
        self,
        x_TD: Tensor,
        normed_TD: Tensor,
        recomputed: Recompute,
        route: Callable[[Tensor], Tensor] | None = None,
    ) -> Output[Tensor]:
        routed = partial(self._route, normed_TD, recomputed, route)
        if self.shared is None:
            routed_TD, choice, by_expert = routed()
        else:
            (routed_TD, choice, by_expert), (x_TD, *_) = overlapped(
                routed, partial(self.shared, x_TD, normed_TD, recomputed)
            )
        out_TD = x_TD + routed_TD
        if not torch.is_grad_enabled():  # without gradients there is no loss and no count
            return Output(out_TD)
        counts_E = by_expert.counts_E
        return Output(out_TD, self.router.side_losses(choice, counts_E), counts={EXPERT_LOAD: counts_E})

    def _route(
        self, normed_TD: Tensor, recomputed: Recompute, route: Callable[[Tensor], Tensor] | None
    ) -> tuple[Tensor, ExpertChoice, ByExpert]:
        choice = self.router(normed_TD, route)
        by_expert = sort_by_expert(choice.experts_TA, self.experts.num_experts)
        return self.experts(normed_TD, choice.weights_TA, by_expert, recomputed), choice, by_expert
