"""Truncated importance sampling: mends the gap between the engine that sampled and the trainer that learns.

Kernels and precisions differ, so the engine's distribution is never quite the trainer's. Weighing a token
by their ratio takes the bias out; the cap keeps rare large ratios from ruling the update.

Legend: M tokens with a loss.
"""

from __future__ import annotations

from torch import Tensor

from foresail.algorithms.losses import exponentiate


def truncated_weights(old_logprobs_M: Tensor, rollout_logprobs_M: Tensor, cap: float) -> Tensor:
    """min(pi_trainer / pi_rollout, cap), detached. Probabilities .6 and .2, cap 2 -> 2."""
    return exponentiate(old_logprobs_M - rollout_logprobs_M).clamp(max=cap).detach()
