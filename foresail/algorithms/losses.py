"""Policy losses of each sampled token, before they are weighed and summed.

With rho = pi / pi_old and A the advantage, to be minimised:
clipped  -min(rho A, clip(rho) A)                     PPO, GRPO; DAPO with the upper bound further out
gspo     the same, rho being the sequence's geometric mean
cispo    -clip(rho) A log pi, the weight detached     no token loses its gradient, only its excess weight
sapo     -4/t sigmoid(t (rho - 1)) A                  no bound: the gradient fades the further rho is from 1

Where the policies agree (rho = 1) all have REINFORCE's gradient, -A grad log pi.

Legend: M tokens with a loss, S sequences.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from foresail.algorithms.sequences import means_of_sequences

# exp(20) is 5e8: far past any bound, and still far from float32's infinity when multiplied.
LOG_RATIO_LIMIT = 20.0


@dataclass(frozen=True, kw_only=True)
class TokenLosses:
    """Losses, and where a bound was active: the ratio was above the upper or below the lower one.

    `dual_clipped_M` is None without a dual clip.
    """

    loss_M: Tensor
    above_M: Tensor
    below_M: Tensor
    dual_clipped_M: Tensor | None = None

    @property
    def clipped_M(self) -> Tensor:
        return self.above_M | self.below_M


def clipped(
    logprobs_M: Tensor,
    old_logprobs_M: Tensor,
    advantages_M: Tensor,
    *,
    low: float,
    high: float,
    dual_clip: float | None = None,
) -> TokenLosses:
    """PPO's clipped loss: no gradient once the ratio has left [1 - low, 1 + high] in A's direction.

    rho 2, A 1, high .28 -> loss -1.28, no gradient; rho 2, A -1 -> loss 2, the gradient pushes back.
    `dual_clip` bounds that second case too: with A < 0 the loss stays below dual_clip * |A|.
    """
    ratio_M = exponentiate(logprobs_M - old_logprobs_M)
    losses = clip_ratio(ratio_M, advantages_M, low=low, high=high)
    if dual_clip is None:
        return losses
    ceiling_M = -advantages_M * dual_clip
    too_high_M = (advantages_M < 0) & (losses.loss_M > ceiling_M)
    return replace(
        losses, loss_M=torch.where(too_high_M, ceiling_M, losses.loss_M), dual_clipped_M=too_high_M
    )


def gspo(
    logprobs_M: Tensor,
    old_logprobs_M: Tensor,
    advantages_M: Tensor,
    sequence_M: Tensor,
    *,
    num_sequences: int,
    low: float,
    high: float,
) -> TokenLosses:
    """Whole sequences are clipped: their ratio is exp of the mean log-ratio of their tokens.

    Log-ratios [.1, .3] of one sequence give both tokens the ratio exp(.2). A sequence must not be cut
    across micro-batches. Summed with "seq-mean-token-mean" the gradient is the paper's.
    """
    log_ratio_M = (logprobs_M - old_logprobs_M).detach()
    means_M = means_of_sequences(log_ratio_M, sequence_M, num_sequences)
    # The value is the sequence's, the gradient the token's own: the difference is zero, its slope is not.
    ratio_M = exponentiate(means_M + logprobs_M - logprobs_M.detach())
    return clip_ratio(ratio_M, advantages_M, low=low, high=high)


def cispo(
    logprobs_M: Tensor, old_logprobs_M: Tensor, advantages_M: Tensor, *, low: float, high: float
) -> TokenLosses:
    """REINFORCE with a clipped importance weight: rho 2, A 1, high .28 -> gradient -1.28 grad log pi."""
    ratio_M = exponentiate(logprobs_M - old_logprobs_M).detach()
    weight_M = ratio_M.clamp(1 - low, 1 + high)
    return TokenLosses(
        loss_M=-weight_M * advantages_M * logprobs_M, above_M=ratio_M > weight_M, below_M=ratio_M < weight_M
    )


def sapo(
    logprobs_M: Tensor,
    old_logprobs_M: Tensor,
    advantages_M: Tensor,
    *,
    temperature_pos: float,
    temperature_neg: float,
) -> TokenLosses:
    """A soft gate instead of bounds: rho 2, A 1, temperature 1 -> loss -4 sigmoid(1) = -2.92.

    The gradient is that of rho A times 4 p (1 - p), p being the sigmoid: 1 at rho = 1, .79 at rho 2. A greater
    temperature makes it fade sooner; tokens with A <= 0 have one of their own.
    """
    ratio_M = exponentiate(logprobs_M - old_logprobs_M)
    positive = advantages_M > 0
    steepness_M = torch.where(positive, torch.full_like(ratio_M, temperature_pos), temperature_neg)
    gate_M = torch.sigmoid(steepness_M * (ratio_M - 1)) * 4 / steepness_M
    never_M = torch.zeros_like(positive)
    return TokenLosses(loss_M=-gate_M * advantages_M, above_M=never_M, below_M=never_M)


def clip_ratio(ratio_M: Tensor, advantages_M: Tensor, *, low: float, high: float) -> TokenLosses:
    """The pessimistic one of the plain and the clipped surrogate."""
    clamped_M = ratio_M.clamp(1 - low, 1 + high)
    plain_M, bounded_M = -ratio_M * advantages_M, -clamped_M * advantages_M
    active_M = bounded_M > plain_M
    return TokenLosses(
        loss_M=torch.maximum(plain_M, bounded_M),
        above_M=active_M & (ratio_M > clamped_M),
        below_M=active_M & (ratio_M < clamped_M),
    )


def exponentiate(log_ratio_M: Tensor) -> Tensor:
    """Log-ratios to ratios, always finite."""
    return log_ratio_M.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT).exp()
