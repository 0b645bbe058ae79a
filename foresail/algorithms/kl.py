"""How far the policy went from a reference, estimated from the sampled tokens alone.

Both have the mean KL(pi || ref) over tokens drawn from pi. As a *loss* they differ: the mean gradient of
k1 is zero (it is the score function itself), so it only measures; that of k3 is the gradient of
KL(ref || pi), which pulls the policy back. Hence k3 is the default.

Legend: M tokens with a loss.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor


def k1(logprobs_M: Tensor, ref_logprobs_M: Tensor) -> Tensor:
    """log pi - log ref: unbiased, noisy, of either sign."""
    return logprobs_M - ref_logprobs_M


def k3(logprobs_M: Tensor, ref_logprobs_M: Tensor) -> Tensor:
    """exp(d) - d - 1 with d = log ref - log pi: unbiased, calm, never negative. d = log 2 -> 1 - log 2.

    Clamped as in verl: a token far out would otherwise drown all others.
    """
    d_M = (ref_logprobs_M - logprobs_M).clamp(-20.0, 20.0)
    return (d_M.expm1() - d_M).clamp(max=10.0)


ESTIMATORS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {"k1": k1, "k3": k3}
