"""The loss of one micro-batch: of SFT, of the policy (the recipe's kind, mismatch weights and masks, KL term), of
the critic.

Each is this micro-batch's part of the update's loss, with metrics as sums over its M tokens. Parts add up: sum the
losses of all micro-batches for the update's loss, sum the metrics and divide by the update's number of loss tokens
for their means.

Legend: M tokens with a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from foresail.algorithms.kl import ESTIMATORS
from foresail.algorithms.losses import TokenLosses, cispo, clipped, gspo, sapo
from foresail.algorithms.mismatch import (
    importance_ratios,
    on_policy_enough,
    sequence_ratios,
    within,
)
from foresail.recipe.tables.policy_loss import Loss
from foresail.records import PackedBatch
from foresail.world import ONE_PROCESS, World


def sft_loss(logprobs_M: Tensor, batch: PackedBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """Weighted negative log-likelihood."""
    return -(batch.weights_M * logprobs_M).sum(), {"sft/nll": -logprobs_M.detach().sum()}


def policy_loss(logprobs_M: Tensor, batch: PackedBatch, settings: Loss) -> tuple[Tensor, dict[str, Tensor]]:
    """The aggregation is in `batch.weights_M`."""
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
    for weight_M, weight_metrics in corrections(logprobs_M, batch, settings):
        loss_M, metrics = loss_M * weight_M, metrics | weight_metrics
    if settings.kl_weight > 0:
        assert batch.ref_logprobs_M is not None, "kl_weight needs the reference's log-probabilities"
        kl_M = ESTIMATORS[settings.kl](logprobs_M, batch.ref_logprobs_M, old_M)
        loss_M = loss_M + settings.kl_weight * kl_M
        metrics["actor/kl"] = kl_M
    sums = {name: value_M.detach().sum(dtype=loss_M.dtype) for name, value_M in metrics.items()}
    return (batch.weights_M * loss_M).sum(), sums


def corrections(
    logprobs_M: Tensor, batch: PackedBatch, settings: Loss
) -> Iterator[tuple[Tensor, dict[str, Tensor]]]:
    """The factor of each token's loss, and metrics. Masked tokens stay in the normaliser: an update with fewer
    tokens left is a smaller step.
    """
    old_M, engine_M, advantages_M = batch.old_logprobs_M, batch.rollout_logprobs_M, batch.advantages_M
    assert old_M is not None and advantages_M is not None
    num_sequences = batch.starts_S1.numel() - 1

    def ratios(level: str) -> Tensor:
        assert engine_M is not None, "importance ratios need the engine's log-probabilities"
        if level == "token":
            return importance_ratios(old_M, engine_M)
        mean = level == "sequence_mean"
        return sequence_ratios(old_M, engine_M, batch.sequence_M, num_sequences=num_sequences, mean=mean)

    if (cap := settings.importance_cap) is not None:
        ratio_M = ratios(settings.importance_level)
        weight_M = ratio_M.clamp(max=cap)
        yield (
            weight_M,
            {
                "rollout/importance_weight": weight_M,
                "rollout/importance_ratio": ratio_M,
                "rollout/importance_capped": ratio_M > cap,
            },
        )
    if settings.importance_mask is not None:
        inside_M = within(ratios(settings.importance_mask), settings.importance_range)
        yield inside_M, {"rollout_corr/rollout_rs_masked_fraction": ~inside_M}
    if (threshold := settings.off_policy_mask_threshold) is not None:
        assert engine_M is not None, "the off-policy mask needs the engine's log-probabilities"
        near_M = on_policy_enough(
            logprobs_M,
            engine_M,
            advantages_M,
            batch.sequence_M,
            num_sequences=num_sequences,
            threshold=threshold,
        )
        yield near_M, {"actor/opsm_clipfrac": ~near_M}
    if settings.ranks_entropy:
        assert batch.top_entropy_M is not None, "which tokens have most entropy is found over the update"
        yield batch.top_entropy_M, {"actor/top_entropy_share": batch.top_entropy_M}


# One row per kind, with its arguments from the batch and the settings.
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
    "sapo": lambda new_M, old_M, advantages_M, batch, s: sapo(
        new_M,
        old_M,
        advantages_M,
        temperature_pos=s.sapo_temperature_pos,
        temperature_neg=s.sapo_temperature_neg,
    ),
}


def value_loss(
    values_M: Tensor, batch: PackedBatch, *, clip: float | None, num_tokens: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """Half the mean squared distance to the returns, over the update's `num_tokens`; `clip` bounds a value's move.

    Value 2, once 0, return 3, clip .5: (2 - 3)^2 and, bounded, (.5 - 3)^2; the greater counts, so the loss is
    3.125, and the token has no gradient until the next step.
    """
    returns_M, old_M = batch.returns_M, batch.values_M
    assert returns_M is not None and old_M is not None, "the value loss needs both"
    errors_M = (values_M - returns_M) ** 2
    clipped_M = torch.zeros_like(errors_M, dtype=torch.bool)
    if clip is not None:
        bounded_M = (old_M + (values_M - old_M).clamp(-clip, clip) - returns_M) ** 2
        clipped_M = bounded_M > errors_M
        errors_M = torch.maximum(errors_M, bounded_M)
    return 0.5 * errors_M.sum() / num_tokens, {"critic/vf_clipfrac": clipped_M.sum()}


def explained_variance(values_M: Tensor, returns_M: Tensor, world: World = ONE_PROCESS) -> float:
    """1: the values are the returns; 0: no better than their mean; below: worse than that.

    Values [0, 1] and returns [0, 2]: errors [0, 1], variances 1/4 and 1 -> 3/4. Equal returns have no variance to
    explain: 0.
    """
    spread = variance(returns_M, world)
    if spread == 0:
        return 0.0
    return (1 - variance(returns_M - values_M, world) / spread).item()


def variance(values_M: Tensor, world: World) -> Tensor:
    """Over the tokens of all ranks; of equal values exactly 0."""
    shifted_M = values_M - world.sum(values_M[:1].sum() * (world.rank == 0))
    count = world.sum(values_M.numel())
    mean = world.sum(shifted_M.sum()) / count
    return world.sum(((shifted_M - mean) ** 2).sum()) / count
