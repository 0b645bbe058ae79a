"""A model on packed sequences: the one forward pass of the trainer, reward models, evaluation and scoring.

    logprobs_M, entropy_M = token_logprobs(model, batch)
    scores_M = run_packed(model, batch, scores_at(places_M)).value

Where ranks share a micro-batch (a context group), each computes its slice, and the values are put together here.

Legend: T tokens, M those with a loss, R those of them that this rank reads, C ranks.
"""

from __future__ import annotations

from typing import Any, TypeVar

import torch.distributed as dist
from torch import Tensor

from foresail.model.attention import PackedAttention
from foresail.model.context import ExchangedAttention, gather_over_group, merge_over_group
from foresail.model.decoder import Decoder
from foresail.model.mtp import Ahead
from foresail.model.output import Output, is_extreme
from foresail.model.readouts import Readout, likelihood_at
from foresail.model.router import CHOSEN_EXPERTS, ReplayedRoutes, Route
from foresail.records import PackedBatch

R = TypeVar("R")


def run_packed(
    model: Decoder,
    batch: PackedBatch,
    readout: Readout[R],
    route: Route | None = None,
    ahead: Ahead[Any] | None = None,
) -> Output[R]:
    """The readout of this rank's tokens: all, or, in a context group, those of its slice (see `own_losses`)."""
    attend = PackedAttention(batch.starts_S1, batch.parents_S)
    if (own := batch.slice) is None:
        return model(batch.ids_T, batch.positions_T, attend, readout, route, ahead)
    assert ahead is None, "MTP layers want whole sequences; the recipe's check refuses cluster.context"
    value, losses, statistics, counts, _ = model(
        batch.ids_T[own.tokens],
        batch.positions_T[own.tokens],
        ExchangedAttention(attend, own.group),
        readout,
        route,
    )
    losses, statistics = (
        {name: reduce_over_group(name, number, own.group) for name, number in numbers.items()}
        for numbers in (losses, statistics)
    )
    counts = {name: sum_over_group(count, own.group) for name, count in counts.items()}
    return Output(value, losses, statistics, counts)


def reduce_over_group(name: str, value: Tensor, group: Any) -> Tensor:
    """Of slices as long as each other: their mean, padding included, or the greatest."""
    values_C = gather_over_group(value, group)
    return values_C.amax() if is_extreme(name) else values_C.mean()


def sum_over_group(count: Tensor, group: Any) -> Tensor:
    """Of all slices, padding included: at most one token less than there are members."""
    total = count.clone()
    dist.all_reduce(total, group=group)
    return total


def own_losses(batch: PackedBatch) -> tuple[Tensor, Tensor]:
    """The places, among this rank's tokens, where it reads, and the ids that come next there."""
    if (own := batch.slice) is None:
        return batch.sources_M, batch.ids_T[batch.targets_M]
    return batch.sources_M[own.own_R] - own.tokens.start, batch.ids_T[batch.targets_M[own.own_R]]


def gather_losses(own: Tensor, batch: PackedBatch) -> Tensor:
    """The values of every token with a loss, of those that each rank has read at its `own_losses`."""
    if batch.slice is None:
        return own
    return merge_over_group(own, batch.slice.own_R, batch.targets_M.numel(), batch.slice.group)


def replayed(model: Decoder, batch: PackedBatch) -> Route | None:
    """The experts that the engine recorded for this rank's tokens; None where it recorded none."""
    if model.shape.experts is None or CHOSEN_EXPERTS not in batch.side:
        return None
    chosen_TX = batch.side[CHOSEN_EXPERTS]
    chosen_TX = chosen_TX if batch.slice is None else chosen_TX[batch.slice.tokens]
    if chosen_TX.ndim == 1:  # no token has a record
        return None
    active = model.shape.experts.active
    return ReplayedRoutes(chosen_TX.unflatten(1, (-1, active)), model.shape.experts.dense_layers)


def score_tokens(
    model: Decoder,
    batch: PackedBatch,
    temperature: float = 1.0,
    route: Route | None = None,
    ahead: Ahead[Any] | None = None,
) -> Output[tuple[Tensor, Tensor]]:
    """Log-probability of every token with a loss, and the entropy of the distribution it was drawn from."""
    readout = likelihood_at(*own_losses(batch), temperature)
    (logprobs, entropy), *side = run_packed(model, batch, readout, route, ahead)
    return Output((gather_losses(logprobs, batch), gather_losses(entropy, batch)), *side)


def token_logprobs(
    model: Decoder, batch: PackedBatch, temperature: float = 1.0, route: Route | None = None
) -> tuple[Tensor, Tensor]:
    return score_tokens(model, batch, temperature, route).value
