"""Losses of single answers judged good or bad, from their log-ratios to the reference.

    kind               a good answer                a bad one
    kto                1 - σ(β (r - KL))            1 - σ(β (KL - r))
    apo_zero_unpaired  1 - σ(β r)                   σ(β r)

r is the log-ratio of an answer to the reference, summed over its tokens. KL is an estimate of the policy's
divergence from the reference: the mean r of answers to other prompts, at least 0, the same for the whole update.

Legend: P answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from foresail.algorithms.preference_losses import sum_answers
from foresail.recipe.tables.preferences import UnpairedLoss
from foresail.records import PackedBatch


def unpaired_loss(
    logprobs_M: Tensor, batch: PackedBatch, settings: UnpairedLoss, kl: float = 0.0
) -> tuple[Tensor, dict[str, Tensor]]:
    """This micro-batch's part of the update's loss; metrics are sums over its answers, good or bad ones apart.

    `batch.answers` weighs each answer by its share in the whole update, so that parts add up.
    """
    answers = batch.answers
    assert answers is not None and answers.desirable_P is not None, "judged answers are wanted"
    assert answers.ref_logprobs_PK is not None, "this loss needs the reference's log-probabilities"
    logprobs_P = sum_answers(logprobs_M, batch)[0].squeeze(1)
    ratios_P, good_P = logprobs_P - answers.ref_logprobs_PK.squeeze(1), answers.desirable_P
    loss_P = KINDS[settings.kind](settings.beta * ratios_P, settings.beta * kl, good_P)
    loss_P = loss_P * torch.where(good_P, settings.desirable_weight, settings.undesirable_weight)
    rewards_P, logprobs_P = settings.beta * ratios_P.detach(), logprobs_P.detach()
    metrics = {"kto/loss": loss_P.detach().sum()}
    for side, those_P in (("chosen", good_P), ("rejected", ~good_P)):
        metrics[f"rewards/{side}"] = (rewards_P * those_P).sum()
        metrics[f"logps/{side}"] = (logprobs_P * those_P).sum()
    return (answers.weights_P * loss_P).sum(), metrics


def kto(rewards_P: Tensor, scaled_kl: float, good_P: Tensor) -> Tensor:
    """Reward 1, β KL = .5: a good answer 1 - σ(.5) = .38, a bad one 1 - σ(-.5) = .62."""
    return 1 - torch.sigmoid(torch.where(good_P, rewards_P - scaled_kl, scaled_kl - rewards_P))


def apo_zero(rewards_P: Tensor, scaled_kl: float, good_P: Tensor) -> Tensor:
    return torch.where(good_P, 1 - torch.sigmoid(rewards_P), torch.sigmoid(rewards_P))


KINDS: dict[str, Callable[[Tensor, float, Tensor], Tensor]] = {"kto": kto, "apo_zero_unpaired": apo_zero}


def kl_of(policy_logprobs: Sequence[float], reference_logprobs: Sequence[float]) -> float:
    """The mean log-ratio of answers to other prompts, at least 0: [-3, -5] and [-4, -5] -> .5."""
    ratios = [ours - theirs for ours, theirs in zip(policy_logprobs, reference_logprobs, strict=True)]
    return max(0.0, sum(ratios) / max(1, len(ratios)))
