"""Which experts a token passes through, and with what weight.

    choice = router(normed_TD)     # choice.experts_TA: 4 of 48, say; choice.weights_TA: how much each counts

Scores are a softmax over all experts, in float32 whatever the weights are. A correction, where there is one, counts
for who is chosen and not for the weight.

Legend: T tokens, D hidden size, E routed experts, A active ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Self

import torch
from torch import Tensor, nn

from foresail.model.linear import linear
from foresail.recipe.shape import Experts

LEAST_SUM = 1e-12  # of a token's scores, so that weights stay finite


class Choice(NamedTuple):
    experts_TA: Tensor
    weights_TA: Tensor  # float32


class Router(nn.Module):
    def __init__(self, hidden_size: int, experts: Experts) -> None:
        super().__init__()
        self.active, self.normalized = experts.active, experts.normalized
        self.weight = nn.Parameter(torch.empty(experts.routed, hidden_size))
        self.correction: nn.Parameter | None = None
        if experts.correction:
            self.correction = nn.Parameter(torch.zeros(1, experts.routed), requires_grad=False)

    def forward(self, normed_TD: Tensor) -> Choice:
        scores_TE = linear(normed_TD.float(), self.weight.float()).softmax(-1)
        wanted_TE = scores_TE if self.correction is None else scores_TE + self.correction
        experts_TA = wanted_TE.topk(self.active, dim=-1).indices
        weights_TA = scores_TE.gather(-1, experts_TA)
        if self.normalized:
            weights_TA = weights_TA / weights_TA.sum(-1, keepdim=True).clamp(min=LEAST_SUM)
        return Choice(experts_TA, weights_TA)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """The correction stays float32 where all else becomes 16 bits: it grows by less than those can hold."""
        super()._apply(fn, recurse)
        if self.correction is not None and self.correction.dtype != torch.float32:
            self.correction = nn.Parameter(self.correction.detach().float(), requires_grad=False)
        return self
