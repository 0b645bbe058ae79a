"""Losses of preference pairs, from the summed log-probabilities of both answers.

    kind          loss of a pair, with r the log-ratio to the reference, n the number of tokens
    sigmoid       DPO: -log σ(z),  z = β (r_chosen - r_rejected)
    sigmoid_norm  DPO, length-normalised: -log σ(z),  z = β (r_chosen / n_chosen - r_rejected / n_rejected)
    ipo           (r_chosen / n_chosen - r_rejected / n_rejected - 1 / 2β)²
    hinge         max(0, 1 - z)
    robust        ((1 - ε) (-log σ(z)) - ε (-log σ(-z))) / (1 - 2ε)
    simpo         no reference: -log σ(z),  z = β (logp_chosen / n_chosen - logp_rejected / n_rejected) - γ

Label smoothing ε makes -log σ(z) into (1 - ε) (-log σ(z)) + ε (-log σ(-z)): conservative DPO. IPO is divided by
lengths as its authors do it, and as TRL does.

Legend: M tokens with a loss, S segments, P pairs; 2: the chosen, then the rejected answer.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from foresail.algorithms.batch_losses import sft_loss
from foresail.recipe.tables.preferences import PreferenceLoss
from foresail.records import PackedBatch


def preference_loss(
    logprobs_M: Tensor, batch: PackedBatch, settings: PreferenceLoss
) -> tuple[Tensor, dict[str, Tensor]]:
    """This micro-batch's part of the update's loss; metrics are sums over its pairs.

    `batch.answers` weighs each pair by its share in the whole update, so parts add up over micro-batches and ranks.
    """
    pairs = batch.answers
    assert pairs is not None, "a preference loss needs pairs"
    logprobs_P2, lengths_P2 = sum_answers(logprobs_M, batch)
    if settings.needs_reference:
        assert pairs.ref_logprobs_PK is not None, "this loss needs the reference's log-probabilities"
        scores_P2 = logprobs_P2 - pairs.ref_logprobs_PK
    else:
        scores_P2 = logprobs_P2
    loss_P = KINDS[settings.kind](scores_P2, lengths_P2, settings)
    loss = (pairs.weights_P * loss_P).sum()
    rewards_P2 = settings.beta * (scores_P2 if settings.needs_reference else scores_P2 / lengths_P2).detach()
    margins_P = rewards_P2[:, 0] - rewards_P2[:, 1]
    metrics = {
        "rewards/chosen": rewards_P2[:, 0],
        "rewards/rejected": rewards_P2[:, 1],
        "rewards/margins": margins_P,
        "rewards/accuracies": (margins_P > 0).float(),
        "logps/chosen": logprobs_P2[:, 0].detach(),
        "logps/rejected": logprobs_P2[:, 1].detach(),
        "dpo/loss": loss_P.detach(),
    }
    sums = {name: value_P.sum() for name, value_P in metrics.items()}
    if settings.sft_weight:
        imitation, _ = sft_loss(logprobs_M, batch)  # there the weight of rejected answers is 0
        loss = loss + settings.sft_weight * imitation
    return loss, sums


def sum_answers(logprobs_M: Tensor, batch: PackedBatch) -> tuple[Tensor, Tensor]:
    """The log-probability of every answer, and how many tokens it has, in float32.

    Log-probabilities [-1, -2, -4] of segments [1, 1, 2], pair (1, 2): sums [[-3, -4]], lengths [[2, 1]].
    """
    assert batch.answers is not None
    zeros_S = torch.zeros(batch.starts_S1.numel() - 1, device=logprobs_M.device)
    sums_S = zeros_S.index_add(0, batch.sequence_M, logprobs_M.float())
    lengths_S = zeros_S.index_add(0, batch.sequence_M, torch.ones_like(logprobs_M, dtype=torch.float32))
    return sums_S[batch.answers.segments_PK], lengths_S[batch.answers.segments_PK]


def difference(scores_P2: Tensor) -> Tensor:
    return scores_P2[:, 0] - scores_P2[:, 1]


def sigmoid_loss(logits_P: Tensor, label_smoothing: float) -> Tensor:
    """sigmoid_loss([0], .1) -> [log 2]; a label that is wrong one time in ten punishes certainty."""
    return -(1 - label_smoothing) * logsigmoid(logits_P) - label_smoothing * logsigmoid(-logits_P)


def robust_loss(logits_P: Tensor, label_smoothing: float) -> Tensor:
    """Its mean over randomly flipped labels is the loss with the right ones."""
    right_P, flipped_P = -logsigmoid(logits_P), -logsigmoid(-logits_P)
    return ((1 - label_smoothing) * right_P - label_smoothing * flipped_P) / (1 - 2 * label_smoothing)


def hinge_loss(logits_P: Tensor) -> Tensor:
    return torch.relu(1 - logits_P)


def ipo_loss(differences_P: Tensor, beta: float) -> Tensor:
    """Not more than 1 / 2β apart: ipo_loss([5], .1) -> [0], ipo_loss([0], .1) -> [25]."""
    return (differences_P - 1 / (2 * beta)) ** 2


# One row per kind, of log-ratios (of simpo log-probabilities) and lengths.
KINDS: dict[str, Callable[[Tensor, Tensor, PreferenceLoss], Tensor]] = {
    "sigmoid": lambda scores_P2, lengths_P2, s: sigmoid_loss(
        s.beta * difference(scores_P2), s.label_smoothing
    ),
    "sigmoid_norm": lambda scores_P2, lengths_P2, s: sigmoid_loss(
        s.beta * difference(scores_P2 / lengths_P2), s.label_smoothing
    ),
    "ipo": lambda scores_P2, lengths_P2, s: ipo_loss(difference(scores_P2 / lengths_P2), s.beta),
    "hinge": lambda scores_P2, lengths_P2, s: hinge_loss(s.beta * difference(scores_P2)),
    "robust": lambda scores_P2, lengths_P2, s: robust_loss(s.beta * difference(scores_P2), s.label_smoothing),
    "simpo": lambda scores_P2, lengths_P2, s: sigmoid_loss(
        s.beta * difference(scores_P2 / lengths_P2) - s.gamma, s.label_smoothing
    ),
}
