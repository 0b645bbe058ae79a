"""How far the trainer's log-probabilities are from the engine's, and the weights that take the bias out.

Kernels and precisions differ, so the engine's distribution is never quite the trainer's.

Legend: M tokens with a loss.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from foresail.algorithms.kl import k3
from foresail.algorithms.losses import exponentiate

MEANS = ("rollout/logprob_abs_diff", "rollout/logprob_kl")


def mismatch(
    logprobs_M: Tensor, rollout_logprobs_M: Tensor, fresh_M: Tensor | None = None
) -> dict[str, Tensor]:
    """Sums over the tokens, which the trainer divides by their number, and the largest difference of any token.

    Others call a KL below 1e-3 acceptable. Where `fresh_M` says which tokens these weights drew, only those count,
    and `rollout/fresh_share` will say how many of all they are.
    """
    logprobs_M = logprobs_M.detach()
    if fresh_M is not None:
        logprobs_M = torch.where(fresh_M > 0, logprobs_M, rollout_logprobs_M)
    differences_M = (logprobs_M - rollout_logprobs_M).abs()
    return {
        "rollout/logprob_abs_diff": differences_M.sum(),
        "rollout/logprob_abs_diff_max": differences_M.max() if len(differences_M) else differences_M.sum(),
        "rollout/logprob_kl": k3(rollout_logprobs_M, logprobs_M).sum(),
        **({} if fresh_M is None else {"rollout/fresh_share": fresh_M.sum()}),
    }


def per_fresh_token(metrics: Mapping[str, float]) -> dict[str, float]:
    """Means over all tokens, of which a share is fresh, become those over the fresh ones."""
    share = metrics.get("rollout/fresh_share")
    if share is None:
        return dict(metrics)
    means = {name: metrics[name] / max(share, 1e-9) for name in MEANS}
    return {**metrics, **means}


def truncated_weights(old_logprobs_M: Tensor, rollout_logprobs_M: Tensor, cap: float) -> Tensor:
    """Truncated importance sampling: min(pi_trainer / pi_rollout, cap), detached.

    Probabilities .6 and .2, cap 2 -> 2. The cap keeps rare large ratios from ruling the update.
    """
    return exponentiate(old_logprobs_M - rollout_logprobs_M).clamp(max=cap).detach()
