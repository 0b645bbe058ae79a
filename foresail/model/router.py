"""The router: a token's experts and their weights, and the losses that balance the experts.

    choice = router(normed_TD)     # choice.experts_TA: 4 of 48, say; choice.weights_TA: how much each counts
    set_router_losses(model, RouterLosses(balance=0.01, z=0.001))   # for the updates from here on

Scores are a softmax over all experts, in float32 whatever the weights are. A correction, where there is one, counts
for who is chosen and not for the weight.

Legend: T tokens, D hidden size, E routed experts, A active ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

import torch
from torch import Tensor, nn

from foresail.model.kernels import available
from foresail.model.linear import is_batch_invariant, linear
from foresail.recipe.shape.model_shape import Experts

EXPERT_LOAD = "expert_load"  # among a pass's counts: tokens of each expert, a row for each layer with experts
CHOSEN_EXPERTS = "experts"  # among side data: a token's, of all layers with experts one after the other
LEAST_SUM = 1e-12  # of a token's scores, so that weights stay finite


class ExpertChoice(NamedTuple):
    experts_TA: Tensor
    weights_TA: Tensor  # float32
    logits_TE: Tensor


class RouterLosses(NamedTuple):
    """How much each counts beside the loss that is trained; 0: it is not computed."""

    balance: float = 0.0
    z: float = 0.0


class Route(Protocol):
    """A caller's function that records or replaces the routers' choices."""

    def __call__(self, layer: int, experts_TA: Tensor) -> Tensor:
        """The experts that a layer's tokens pass through, given those that its router chose."""


class ReplayedRoutes:
    """Choices that were recorded: (tokens, layers with experts, active). Below 0: unknown, the router chooses."""

    def __init__(self, experts_TLA: Tensor, first_layer: int) -> None:
        self.experts_TLA, self.first_layer = experts_TLA, first_layer

    def __call__(self, layer: int, experts_TA: Tensor) -> Tensor:
        recorded_TA = self.experts_TLA[:, layer - self.first_layer].to(experts_TA.dtype)
        return torch.where(recorded_TA[:, :1] >= 0, recorded_TA, experts_TA)


class Router(nn.Module):
    def __init__(self, hidden_size: int, experts: Experts) -> None:
        super().__init__()
        self.active, self.normalized, self.losses = experts.active, experts.normalized, RouterLosses()
        self.weight = nn.Parameter(torch.empty(experts.routed, hidden_size))
        self.correction: nn.Parameter | None = None
        if experts.correction:
            self.correction = nn.Parameter(torch.zeros(1, experts.routed), requires_grad=False)

    def forward(self, normed_TD: Tensor, route: Callable[[Tensor], Tensor] | None = None) -> ExpertChoice:
        """`route` may replace the experts; their weights are by this router's own scores in any case."""
        plain = route is None and not torch.is_grad_enabled() and not is_batch_invariant()
        if plain and available.can_fuse(normed_TD):
            return self._decode(normed_TD)
        logits_TE = linear(normed_TD.float(), self.weight.float())
        scores_TE = logits_TE.softmax(-1)
        ranking_TE = scores_TE if self.correction is None else scores_TE + self.correction
        experts_TA = ranking_TE.topk(self.active, dim=-1).indices
        if route is not None:
            experts_TA = route(experts_TA)
        weights_TA = scores_TE.gather(-1, experts_TA)
        if self.normalized:
            weights_TA = weights_TA / weights_TA.sum(-1, keepdim=True).clamp(min=LEAST_SUM)
        return ExpertChoice(experts_TA, weights_TA, logits_TE)

    def _decode(self, normed_TD: Tensor) -> ExpertChoice:
        """The same in one kernel."""
        from foresail.model.kernels import routing

        return ExpertChoice(
            *routing.route(
                normed_TD, self.weight, self.correction, self.active, self.normalized, least=LEAST_SUM
            )
        )

    def side_losses(self, choice: ExpertChoice, counts_E: Tensor) -> dict[str, Tensor]:
        """Means over the tokens, with their coefficients."""
        losses = {}
        if self.losses.balance:
            balance = balance_loss(choice.logits_TE.softmax(-1), counts_E)
            losses["router/balance_loss"] = self.losses.balance * balance
        if self.losses.z:
            losses["router/z_loss"] = self.losses.z * z_loss(choice.logits_TE)
        return losses

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """The correction stays float32 where all else becomes 16 bits: it grows by less than those can hold."""
        super()._apply(fn, recurse)
        if self.correction is not None and self.correction.dtype != torch.float32:
            self.correction = nn.Parameter(self.correction.detach().float(), requires_grad=False)
        return self


def balance_loss(scores_TE: Tensor, counts_E: Tensor) -> Tensor:
    """E times the sum over experts of mean score and share of the places: 1 where all have as much, E where one has
    everything. Its gradient goes by the scores alone.
    """
    share_E = counts_E / counts_E.sum()
    return scores_TE.shape[1] * (scores_TE.mean(0) * share_E).sum()


def z_loss(logits_TE: Tensor) -> Tensor:
    """Keeps logits small, so that their softmax stays exact."""
    return logits_TE.logsumexp(-1).square().mean()


def routers_of(model: nn.Module) -> list[Router]:
    return [module for module in model.modules() if isinstance(module, Router)]


def set_router_losses(model: nn.Module, losses: RouterLosses) -> None:
    for router in routers_of(model):
        router.losses = losses
