"""The SFT loss of one micro-batch: weighted negative log-likelihood of the tokens that carry a loss.

Legend: M tokens with a loss.
"""

from __future__ import annotations

from torch import Tensor

from foresail.records import PackedBatch


def sft_loss(logprobs_M: Tensor, batch: PackedBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """This micro-batch's share of the update's loss, and metrics as sums over its M tokens."""
    return -(batch.weights_M * logprobs_M).sum(), {"sft/nll": -logprobs_M.detach().sum()}
