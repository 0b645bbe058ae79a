"""How far the trainer's log-probabilities are from the engine's, for tokens the engine has just drawn.

Legend: M tokens with a loss.
"""

from __future__ import annotations

from torch import Tensor

from foresail.algorithms.kl import k3


def mismatch(logprobs_M: Tensor, rollout_logprobs_M: Tensor) -> dict[str, Tensor]:
    """Sums over the tokens, which the trainer divides by their number, and the largest difference of any token.

    Others call a KL below 1e-3 acceptable.
    """
    logprobs_M = logprobs_M.detach()
    differences_M = (logprobs_M - rollout_logprobs_M).abs()
    return {
        "rollout/logprob_abs_diff": differences_M.sum(),
        "rollout/logprob_abs_diff_max": differences_M.max() if len(differences_M) else differences_M.sum(),
        "rollout/logprob_kl": k3(rollout_logprobs_M, logprobs_M).sum(),
    }
