"""Balance of the experts: coefficients of the routers' losses, the load of every expert, and its correction.

    balance_experts(policy.model, recipe.router, update / total)   # before each update, on every rank
    train_step(policy, …)                                          # counts, and moves corrections where asked
    load_LE = policy.expert_load.take()                            # once a step, for the log

All ranks have the same counts, those of the whole update, so their corrections move alike.

Legend: L layers with experts, E routed experts.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.router import RouterLosses, routers_of, set_router_losses
from foresail.recipe.tables.router import Router, router_refusals


def balance_experts(model: Decoder, settings: Router | None, progress: float) -> None:
    """`progress`, 0 to 1, is all that the coefficients depend on: a resumed run has the same ones."""
    if settings is not None:
        remaining = settings.left(progress)
        set_router_losses(model, RouterLosses(settings.balance * remaining, settings.z * remaining))


class ExpertLoad:
    """Tokens that each expert has had since the last `take()`. After each update corrections move by `rate`: up
    where an expert had less than the mean of its layer, down where more.
    """

    def __init__(self, model: Decoder, rate: float = 0.0) -> None:
        self.rate, self.corrections = rate, [router.correction for router in routers_of(model)]
        self.total_LE: Tensor | None = None

    @torch.no_grad()
    def add(self, load_LE: Tensor) -> None:
        """An update's counts, on the host."""
        self.total_LE = load_LE if self.total_LE is None else self.total_LE + load_LE
        if self.rate:
            moves_LE = self.rate * (load_LE.mean(1, keepdim=True) - load_LE).sign()
            for correction_1E, move_E in zip(self.corrections, moves_LE, strict=True):
                assert correction_1E is not None, "asked for at the start"
                correction_1E.add_(move_E.to(correction_1E.device))

    def take(self) -> Tensor | None:
        """None where there was no update."""
        load_LE, self.total_LE = self.total_LE, None
        return load_LE


def open_load(model: Decoder, settings: Router | None) -> ExpertLoad | None:
    """None for a dense model; a recipe that balances the experts of one is refused."""
    for refusal in router_refusals(settings, model.shape):
        raise ValueError(refusal)
    if model.shape.experts is None:
        return None
    return ExpertLoad(model, 0.0 if settings is None else settings.correction_rate)


def load_metrics(load_LE: Tensor) -> dict[str, float]:
    """[[2, 2, 2, 2], [8, 0, 0, 0]] -> the worst layer's max over mean 4, 2.5 on average, 3 dead experts, …

    The entropy is that of the shares in a layer, 1 where all experts have as much and 0 where one has everything.
    """
    mean_L = load_LE.mean(1)
    peak_L = load_LE.amax(1) / mean_L
    share_LE = load_LE / load_LE.sum(1, keepdim=True)
    entropy_L = torch.special.entr(share_LE).sum(1) / math.log(max(2, load_LE.shape[1]))
    return {
        "router/load_max_over_mean": peak_L.max().item(),
        "router/load_max_over_mean_average": peak_L.mean().item(),
        "router/load_entropy": entropy_L.mean().item(),
        "router/dead_experts": int((load_LE == 0).sum()),
        "router/tokens_per_expert": mean_L.mean().item(),
    }
