"""The critic's loss: half the squared distance to the returns, moved no further than a bound in one step.

Legend: M tokens with a loss.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foresail.records import PackedBatch


def value_loss(
    values_M: Tensor, batch: PackedBatch, *, clip: float | None, num_tokens: int
) -> tuple[Tensor, dict[str, Tensor]]:
    """This micro-batch's share of the mean over the update's `num_tokens`, and metrics as sums over its own.

    Value 2, once 0, return 3, clip .5: (2 - 3)^2 and, bounded, (.5 - 3)^2; the greater counts, so the loss is
    3.125 and the token has no more to say until the next step.
    """
    returns_M, old_M = batch.returns_M, batch.values_M
    assert returns_M is not None and old_M is not None, "the value loss needs both"
    errors_M = (values_M - returns_M) ** 2
    clipped_M = torch.zeros_like(errors_M, dtype=torch.bool)
    if clip is not None:
        bounded_M = (old_M + (values_M - old_M).clamp(-clip, clip) - returns_M) ** 2
        clipped_M = bounded_M > errors_M
        errors_M = torch.maximum(errors_M, bounded_M)
    return 0.5 * errors_M.sum() / num_tokens, {"critic/vf_clipfrac": clipped_M.sum()}


def explained_variance(values_M: Tensor, returns_M: Tensor) -> float:
    """1: the values are the returns; 0: no better than their mean; below: worse than that.

    Values [0, 1] and returns [0, 2]: errors [0, 1], variances 1/4 and 1 -> 3/4. Equal returns leave nothing to
    explain: 0.
    """
    spread = returns_M.var(correction=0)
    if spread == 0:
        return 0.0
    return (1 - (returns_M - values_M).var(correction=0) / spread).item()
