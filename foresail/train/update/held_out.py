"""The loss on held-out data; ranks compute a share each, and all get the result.

held_out_loss(trainer, batches)                # the mean over all tokens with a loss
sum_loss(trainer, batches, preference_loss)    # {"loss": …, "rewards/margins": …}, sums over the set
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from foresail.model.packed import token_logprobs
from foresail.records import PackedBatch
from foresail.train.trainer import Trainer
from foresail.train.update.step import Loss


@torch.no_grad()
def sum_loss(trainer: Trainer[Any], batches: Iterable[PackedBatch], loss: Loss) -> dict[str, float]:
    """The loss and its terms, added up over micro-batches and ranks."""
    sums: dict[str, Tensor] = {}
    for batch in batches:
        logprobs_M, _ = token_logprobs(trainer.policy.model, batch)
        value, terms = loss(logprobs_M, batch)
        for name, term in {"loss": value, **terms}.items():
            sums[name] = sums.get(name, torch.zeros_like(term)) + term
    return {name: float(trainer.world.data.sum(total)) for name, total in sums.items()}


def held_out_loss(trainer: Trainer[Any], batches: Iterable[PackedBatch]) -> float:
    """The mean negative log-likelihood of the tokens with a loss."""
    sums = sum_loss(trainer, batches, token_nll)
    return sums["loss"] / max(1, sums["tokens"]) if sums else 0.0


def token_nll(logprobs_M: Tensor, batch: PackedBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """In float64, for a set may be large."""
    nll = -logprobs_M.double().sum()
    return nll, {"tokens": torch.full_like(nll, len(logprobs_M))}
