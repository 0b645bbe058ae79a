"""How far the trainer's log-probabilities are from the engine's, for tokens the engine has just drawn.

Legend: M tokens with a loss.
"""

from __future__ import annotations

from torch import Tensor

from foresail.algorithms.kl import k3


def mismatch(logprobs_M: Tensor, rollout_logprobs_M: Tensor) -> dict[str, Tensor]:
    """Sums over the tokens; the trainer divides by their number. Others call a KL below 1e-3 acceptable."""
    logprobs_M = logprobs_M.detach()
    return {
        "rollout/logprob_abs_diff": (logprobs_M - rollout_logprobs_M).abs().sum(),
        "rollout/logprob_kl": k3(rollout_logprobs_M, logprobs_M).sum(),
    }
