"""Cross-entropy of an environment's tokens (ECHO), from the same forward pass as the policy's loss.

    (scores, said_O), *side = run_packed(model, batch, with_observed(readout, batch))
    loss, terms = echo_loss(said_O, batch)

It is a mean over all such tokens of the update, apart from the policy's own tokens. The sampling temperature is
not applied to them.

Legend: O tokens of the environment, R those that this rank reads.
"""

from __future__ import annotations

from typing import TypeVar

from torch import Tensor

from foresail.model.context import merge_over_group
from foresail.model.readouts import Readout, both, likelihood_at
from foresail.records import PackedBatch

R = TypeVar("R")


def with_observed(readout: Readout[R], batch: PackedBatch) -> Readout[tuple[R, Tensor | None]]:
    """The readout's value, and the log-probabilities of the environment's tokens, where the batch has some."""
    observed, batch_slice = batch.observed, batch.slice
    if observed is None:
        return lambda hidden_TD, head_VD: (readout(hidden_TD, head_VD), None)
    sources_R, ids_R, begin = observed.sources_O, batch.ids_T[observed.targets_O], 0
    if batch_slice is not None:
        assert observed.own_R is not None
        sources_R, ids_R, begin = sources_R[observed.own_R], ids_R[observed.own_R], batch_slice.tokens.start
    read_pair = both(readout, likelihood_at(sources_R - begin, ids_R))

    def read_both(hidden_TD: Tensor, head_VD: Tensor) -> tuple[R, Tensor]:
        value, (logprobs_R, _) = read_pair(hidden_TD, head_VD)
        return value, logprobs_R

    return read_both


def echo_loss(logprobs_R: Tensor, batch: PackedBatch) -> tuple[Tensor, dict[str, Tensor]]:
    """This micro-batch's part of the mean over the update, and the same as a sum over tokens that learn."""
    observed, batch_slice = batch.observed, batch.slice
    assert observed is not None
    logprobs_O = logprobs_R
    if batch_slice is not None:
        assert observed.own_R is not None
        logprobs_O = merge_over_group(
            logprobs_R, observed.own_R, observed.targets_O.numel(), batch_slice.group
        )
    loss = -logprobs_O.sum() / max(1, observed.of_update)
    return loss, {"actor/echo_loss": loss.detach() * observed.tokens_of_update}
