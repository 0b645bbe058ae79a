"""The mismatch of the trainer's and the engine's log-probabilities, and importance weights against its bias.

Kernels and precisions differ, so the two distributions are never equal; and tokens may be of older weights than the
trainer's. Both effects are measured separately.

Legend: M tokens with a loss.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from foresail.algorithms.kl import k3
from foresail.algorithms.losses import exponentiate
from foresail.algorithms.sequences import means_of_sequences, sums_of_sequences

FRESH = ("rollout/logprob_abs_diff", "rollout/logprob_kl")
STALE = ("rollout/stale_abs_diff", "rollout/stale_kl")


def mismatch(
    logprobs_M: Tensor, rollout_logprobs_M: Tensor, fresh_M: Tensor | None = None
) -> dict[str, Tensor]:
    """Sums over the tokens, which the trainer divides by their number, and the largest difference of any token.

    Others call a KL below 1e-3 acceptable. Where `fresh_M` says which tokens these weights drew, only those count,
    others have sums of their own, and `rollout/fresh_share` will say how many of all are fresh.
    """
    logprobs_M = logprobs_M.detach()
    if fresh_M is None:
        return distances(logprobs_M, rollout_logprobs_M)
    fresh = distances(torch.where(fresh_M > 0, logprobs_M, rollout_logprobs_M), rollout_logprobs_M)
    stale = distances(torch.where(fresh_M > 0, rollout_logprobs_M, logprobs_M), rollout_logprobs_M)
    aged = {name: stale[same] for name, same in zip(STALE, FRESH, strict=True)}
    return {**fresh, **aged, "rollout/fresh_share": fresh_M.sum()}


def distances(logprobs_M: Tensor, rollout_logprobs_M: Tensor) -> dict[str, Tensor]:
    differences_M = (logprobs_M - rollout_logprobs_M).abs()
    return {
        "rollout/logprob_abs_diff": differences_M.sum(),
        "rollout/logprob_abs_diff_max": differences_M.max() if len(differences_M) else differences_M.sum(),
        "rollout/logprob_kl": k3(rollout_logprobs_M, logprobs_M).sum(),
    }


def split_by_age(metrics: Mapping[str, float]) -> dict[str, float]:
    """Means over all tokens, of which a share is fresh, become those over the fresh and over the stale ones.

    No metric of a kind that has no tokens.
    """
    share = metrics.get("rollout/fresh_share")
    if share is None:
        return dict(metrics)
    split = {name: value for name, value in metrics.items() if not name.startswith((*FRESH, *STALE))}
    if share > 0:
        split |= {name: metrics[name] / share for name in FRESH}
        split["rollout/logprob_abs_diff_max"] = metrics["rollout/logprob_abs_diff_max"]
    if share < 1:
        split |= {name: metrics[name] / (1 - share) for name in STALE}
    return split


def importance_ratios(old_logprobs_M: Tensor, rollout_logprobs_M: Tensor) -> Tensor:
    """pi_trainer / pi_rollout, detached: probabilities .6 and .2 -> 3. Their mean is about 1.

    As weights they are bounded from above (truncated importance sampling): rare large ones would dominate the
    update.
    """
    return exponentiate(old_logprobs_M - rollout_logprobs_M).detach()


def sequence_ratios(
    old_logprobs_M: Tensor, rollout_logprobs_M: Tensor, sequence_M: Tensor, *, num_sequences: int, mean: bool
) -> Tensor:
    """The product of a sequence's token ratios, or with `mean` their geometric mean, at each of its tokens.

    Ratios [3, 1/2] of one sequence -> [1.5, 1.5], or [1.22, 1.22].
    """
    gather = means_of_sequences if mean else sums_of_sequences
    return exponentiate(gather(old_logprobs_M - rollout_logprobs_M, sequence_M, num_sequences).detach())


def within(ratio_M: Tensor, bounds: Sequence[float]) -> Tensor:
    """Which ratios lie between the bounds: ratios [.1, 1, 3] within (.5, 2) -> [False, True, False]."""
    low, high = bounds
    return (ratio_M >= low) & (ratio_M <= high)


def on_policy_enough(
    logprobs_M: Tensor,
    rollout_logprobs_M: Tensor,
    advantages_M: Tensor,
    sequence_M: Tensor,
    *,
    num_sequences: int,
    threshold: float,
) -> Tensor:
    """False at tokens with A < 0 of a sequence whose mean log(pi_rollout / pi) is above the threshold.

    A bad sample that the policy already writes less often is not pushed down further (DeepSeek-V3.2). A sequence of
    log-ratios [.3, .1], A -1, threshold .1 -> [False, False].
    """
    apart_M = means_of_sequences((rollout_logprobs_M - logprobs_M).detach(), sequence_M, num_sequences)
    return (advantages_M >= 0) | (apart_M <= threshold)
