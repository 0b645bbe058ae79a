"""Estimators of the KL divergence between policy and reference, from the sampled tokens alone.

Both have the mean KL(pi || ref) over tokens drawn from pi. As a *loss* they differ: the mean gradient of
k1 is zero (it is the score function itself), so it only measures; that of k3 is the gradient of
KL(ref || pi), which pulls the policy back. Hence k3 is the default. Times the ratio of pi to the policy that drew
the tokens, k3 has the gradient of KL(pi || ref) itself, also once pi has moved away (DeepSeek-V3.2).

Legend: M tokens with a loss.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from foresail.algorithms.losses import exponentiate


def k1(logprobs_M: Tensor, ref_logprobs_M: Tensor) -> Tensor:
    """log pi - log ref: unbiased, noisy, of either sign."""
    return logprobs_M - ref_logprobs_M


def k3(logprobs_M: Tensor, ref_logprobs_M: Tensor) -> Tensor:
    """exp(d) - d - 1 with d = log ref - log pi: unbiased, low variance, never negative. d = log 2 -> 1 - log 2.

    Clamped as in verl: a single outlier would otherwise dominate.
    """
    d_M = (ref_logprobs_M - logprobs_M).clamp(-20.0, 20.0)
    return (d_M.expm1() - d_M).clamp(max=10.0)


def k3_unbiased(logprobs_M: Tensor, ref_logprobs_M: Tensor, old_logprobs_M: Tensor) -> Tensor:
    """pi / pi_old k3, the ratio with its gradient. pi 1/2, ref 1/4, old 1/4 -> 2 (1/2 + log 2 - 1)."""
    return exponentiate(logprobs_M - old_logprobs_M) * k3(logprobs_M, ref_logprobs_M)


# Of the policy's, the reference's and the old policy's log-probabilities.
ESTIMATORS: dict[str, Callable[[Tensor, Tensor, Tensor], Tensor]] = {
    "k1": lambda logprobs_M, ref_logprobs_M, old_logprobs_M: k1(logprobs_M, ref_logprobs_M),
    "k3": lambda logprobs_M, ref_logprobs_M, old_logprobs_M: k3(logprobs_M, ref_logprobs_M),
    "k3_unbiased": k3_unbiased,
}
