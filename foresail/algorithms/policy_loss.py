"""The policy loss of one micro-batch: the recipe's kind, the mismatch weights and the KL term in one sum.

Legend: M tokens with a loss.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from foresail.algorithms.importance import truncated_weights
from foresail.algorithms.kl import ESTIMATORS
from foresail.algorithms.losses import TokenLosses, cispo, clipped, gspo
from foresail.recipe.parts import Loss
from foresail.records import PackedBatch


def policy_loss(logprobs_M: Tensor, batch: PackedBatch, settings: Loss) -> tuple[Tensor, dict[str, Tensor]]:
    """This micro-batch's share of the update's loss, and metrics as sums over its M tokens.

    Shares add up: sum the losses of all micro-batches for the update's loss, sum the metrics and divide
    by the update's number of loss tokens for their means. The aggregation is in `batch.weights_M`.
    """
    old_M, advantages_M = batch.old_logprobs_M, batch.advantages_M
    assert old_M is not None and advantages_M is not None, "the policy loss needs both"
    losses = KINDS[settings.kind](logprobs_M, old_M, advantages_M, batch, settings)
    loss_M = losses.loss_M
    metrics = {
        "actor/pg_clipfrac": losses.clipped_M,
        "actor/pg_clipfrac_above": losses.above_M,
        "actor/pg_clipfrac_below": losses.below_M,
        "actor/ppo_kl": old_M - logprobs_M,
    }
    if losses.dual_clipped_M is not None:
        metrics["actor/pg_clipfrac_lower"] = losses.dual_clipped_M
    if settings.importance_cap is not None:
        assert batch.rollout_logprobs_M is not None, "importance_cap needs the engine's log-probabilities"
        importance_M = truncated_weights(old_M, batch.rollout_logprobs_M, settings.importance_cap)
        loss_M = loss_M * importance_M
        metrics["rollout/importance_weight"] = importance_M
    if settings.kl_weight > 0:
        assert batch.ref_logprobs_M is not None, "kl_weight needs the reference's log-probabilities"
        kl_M = ESTIMATORS[settings.kl](logprobs_M, batch.ref_logprobs_M)
        loss_M = loss_M + settings.kl_weight * kl_M
        metrics["actor/kl"] = kl_M
    sums = {name: value_M.detach().sum(dtype=loss_M.dtype) for name, value_M in metrics.items()}
    return (batch.weights_M * loss_M).sum(), sums


# One row per kind; each takes from the batch and the settings what it needs.
KINDS: dict[str, Callable[[Tensor, Tensor, Tensor, PackedBatch, Loss], TokenLosses]] = {
    "clip": lambda new_M, old_M, advantages_M, batch, s: clipped(
        new_M, old_M, advantages_M, low=s.clip_low, high=s.clip_high, dual_clip=s.dual_clip
    ),
    "gspo": lambda new_M, old_M, advantages_M, batch, s: gspo(
        new_M,
        old_M,
        advantages_M,
        batch.sequence_M,
        num_sequences=batch.starts_S1.numel() - 1,
        low=s.clip_low,
        high=s.clip_high,
    ),
    "cispo": lambda new_M, old_M, advantages_M, batch, s: cispo(
        new_M, old_M, advantages_M, low=s.clip_low, high=s.clip_high
    ),
}
