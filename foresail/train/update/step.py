"""One optimiser update over packed micro-batches, the same for every stage.

A loss is a sum over tokens whose weights already hold the normaliser of the whole update, so how the
sequences are split into micro-batches changes nothing but rounding.

Legend: T tokens, M those with a loss, D hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from foresail.model.attention import PackedAttention
from foresail.model.context import ExchangedAttention, gather_over_group, merge_over_group
from foresail.model.decoder import Decoder
from foresail.model.mtp import Ahead, MtpHeads
from foresail.model.output import NOTHING, Output, add_up
from foresail.model.readouts import Readout, likelihood_at
from foresail.model.router import CHOSEN_EXPERTS, EXPERT_LOAD, ReplayedRoutes, Route
from foresail.records import PackedBatch, RunStopped
from foresail.train.auxiliary.mtp import MtpLoss, read_ahead
from foresail.train.learner import Learner
from foresail.world import World

R = TypeVar("R")
Terms = dict[str, Tensor]
Loss = Callable[[Tensor, PackedBatch], tuple[Tensor, Terms]]  # of the log-probabilities of the tokens


class BatchLoss(NamedTuple):
    """A micro-batch's share of the update's loss, and other terms to log: sums over its tokens; of those whose
    name ends in _max the greatest. Losses, statistics and counts are those that the model's layers handed back.
    """

    loss: Tensor
    terms: Terms
    losses: Mapping[str, Tensor] = NOTHING
    statistics: Mapping[str, Tensor] = NOTHING
    counts: Mapping[str, Tensor] = NOTHING
    ahead: BatchLoss | None = None  # that of its MTP layers, a sum over tokens as well


LossOfBatch = Callable[[Any, PackedBatch], BatchLoss]  # by the learner's model


class NonFiniteLoss(RunStopped):
    """The loss or its gradient is NaN or infinite; the weights were not touched."""


def run_packed(
    model: Decoder,
    batch: PackedBatch,
    readout: Readout[R],
    route: Route | None = None,
    ahead: Ahead[Any] | None = None,
) -> Output[R]:
    """What the readout makes of this rank's tokens: all, or those of its slice (see `own_losses`)."""
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
    counted = {name: sum_over_group(count, own.group) for name, count in counts.items()}
    return Output(value, losses, statistics, counted)


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
    """Where this rank reads, among its own tokens, and the ids that follow there."""
    if (own := batch.slice) is None:
        return batch.sources_M, batch.ids_T[batch.targets_M]
    return batch.sources_M[own.own_R] - own.tokens.start, batch.ids_T[batch.targets_M[own.own_R]]


def gather_losses(own: Tensor, batch: PackedBatch) -> Tensor:
    """What was read at `own_losses` for every token with a loss, whoever has read it."""
    if batch.slice is None:
        return own
    return merge_over_group(own, batch.slice.own_R, batch.targets_M.numel(), batch.slice.group)


def replayed(model: Decoder, batch: PackedBatch) -> Route | None:
    """By the experts that the engine has recorded for this rank's tokens, where it has."""
    if model.shape.experts is None or CHOSEN_EXPERTS not in batch.side:
        return None
    chosen_TX = batch.side[CHOSEN_EXPERTS]
    chosen_TX = chosen_TX if batch.slice is None else chosen_TX[batch.slice.tokens]
    if chosen_TX.ndim == 1:  # nothing is known of any token
        return None
    active = model.shape.experts.active
    return ReplayedRoutes(chosen_TX.unflatten(1, (-1, active)), model.shape.experts.dense_layers)


def score_tokens(
    model: Decoder,
    batch: PackedBatch,
    temperature: float = 1.0,
    route: Route | None = None,
    mtp: MtpLoss | None = None,
) -> Output[tuple[Tensor, Tensor]]:
    """Log-probability of every token with a loss, and the entropy of what it was drawn from."""
    readout = likelihood_at(*own_losses(batch), temperature)
    (logprobs, entropy), *side = run_packed(model, batch, readout, route, ahead_of(batch, mtp, temperature))
    return Output((gather_losses(logprobs, batch), gather_losses(entropy, batch)), *side)


def token_logprobs(
    model: Decoder, batch: PackedBatch, temperature: float = 1.0, route: Route | None = None
) -> tuple[Tensor, Tensor]:
    return score_tokens(model, batch, temperature, route).value


def token_loss(
    model: Decoder,
    batch: PackedBatch,
    *,
    loss: Loss,
    temperature: float = 1.0,
    mtp: MtpLoss | None = None,
) -> BatchLoss:
    """A loss of the log-probabilities alone; the entropy is logged with its terms."""
    (logprobs_M, entropy_M), *side = score_tokens(model, batch, temperature, mtp=mtp)
    value, terms = loss(logprobs_M, batch)
    return BatchLoss(value, {"entropy": entropy_M.sum(), **terms}, *side)


def ahead_of(batch: PackedBatch, mtp: MtpLoss | None, temperature: float) -> Ahead[BatchLoss] | None:
    """What is read of MTP layers beside the main pass, where they learn."""
    if mtp is None:
        return None
    return partial(mtp_loss, batch=batch, settings=mtp, temperature=temperature)


def mtp_loss(
    stream_TD: Tensor, heads: MtpHeads, *, batch: PackedBatch, settings: MtpLoss, temperature: float
) -> BatchLoss:
    return BatchLoss(*read_ahead(stream_TD, heads, batch, settings, temperature))


def train_step(
    learner: Learner[Any],
    batches: Sequence[PackedBatch],
    batch_loss: LossOfBatch,
    *,
    learning_rate: float,
) -> dict[str, float]:
    """One update: sum the gradients of all micro-batches, clip, step.

    -> {"loss": …, "grad_norm": before it was clipped, …}: all else are means over the update's tokens. Nothing is
    read from the device until the end, so it is never waited for.
    """
    optimizer, world = learner.optimizer, learner.world.data
    assert optimizer is not None, f"{learner.name} is frozen"
    scale = optimizer.gradients.scale
    # at least 1: documents of one token each have no loss
    num_tokens = max(1, world.sum(sum(batch.targets_M.numel() for batch in batches)))
    num_places = max(1, world.sum(sum(map(count_places, batches))))
    while True:
        sums: Terms = {}
        counts: Mapping[str, Tensor] = NOTHING
        for batch in batches:
            found = batch_loss(learner.model, batch)
            loss, terms = add_side_losses(found, count_places(batch) / num_places, num_tokens)
            optimizer.gradients.add(loss)
            for name, term in {"loss": loss, **terms}.items():
                term = term.detach()
                sums[name] = merge(name, sums[name], term) if name in sums else term
            counts = add_up((counts, found.counts if count_places(batch) else cleared(found.counts)))
        norm = optimizer.clip()
        if math.isfinite(norm) or scale is None or not scale.lower():
            break
        optimizer.zero_grad()  # float16 holds no gradient so large: again, with the loss scaled by less
    totals, counted = total_up(sums, counts, world)
    update_loss = totals.pop("loss")
    if not math.isfinite(norm) or not math.isfinite(update_loss):
        advice = "" if scale is None else ', or set model.dtype = "bfloat16", which holds larger numbers'
        raise NonFiniteLoss(find_culprit(learner, batches, batch_loss) + advice)
    if learner.expert_load is not None:
        learner.expert_load.add(counted[EXPERT_LOAD])
    optimizer.update(learning_rate)
    means = {name: value if is_extreme(name) else value / num_tokens for name, value in totals.items()}
    return {"loss": update_loss, "grad_norm": norm, **means}


def count_places(batch: PackedBatch) -> int:
    """Tokens of a micro-batch; of an idle one, which has no loss, none."""
    return batch.ids_T.numel() if batch.targets_M.numel() else 0


def add_side_losses(found: BatchLoss, share: float, num_tokens: int) -> tuple[Tensor, Terms]:
    """The loss with those of the layers, and all terms. What a layer hands back is a mean over its pass, which has
    `share` of the update's tokens; among the terms it becomes a sum as they are.
    """
    loss = found.loss
    for value in found.losses.values():
        loss = loss + share * value
    side = {
        name: value.detach() * (1 if is_extreme(name) else share * num_tokens)
        for name, value in (*found.losses.items(), *found.statistics.items())
    }
    if found.ahead is not None:
        more, terms = add_side_losses(found.ahead, share, num_tokens)
        loss, side = loss + more, side | terms
    return loss, {**found.terms, **side}


def merge(name: str, before: Tensor, term: Tensor) -> Tensor:
    """Terms of two micro-batches: sums add up, of extremes the greater stays."""
    return torch.maximum(before, term) if is_extreme(name) else before + term


def total_up(
    terms: Terms, counts: Mapping[str, Tensor], world: World
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """As `merge`, over all ranks, and off the device, which is waited for once; counts are float32, exact up to
    16 million.
    """
    values = [*terms.values(), *counts.values()]
    local = torch.cat([value.float().flatten() for value in values])
    found = torch.stack([world.sum(local), world.max(local)]).cpu()
    sums, peaks = found[:, : len(terms)].tolist()
    totals = {
        name: peak if is_extreme(name) else total
        for name, total, peak in zip(terms, sums, peaks, strict=True)
    }
    parts = found[0, len(terms) :].split([count.numel() for count in counts.values()])
    return totals, {
        name: part.view(count.shape) for (name, count), part in zip(counts.items(), parts, strict=True)
    }


def cleared(counts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Those of an idle micro-batch: zeros, so that every rank has as many numbers."""
    return {name: torch.zeros_like(count) for name, count in counts.items()}


def is_extreme(name: str) -> bool:
    return name.endswith("_max")


def prefixed(prefix: str, metrics: Mapping[str, float]) -> dict[str, float]:
    """prefixed("actor", {"loss": 1, "sft/nll": 2}) -> {"actor/loss": 1, "sft/nll": 2}."""
    return {name if "/" in name else f"{prefix}/{name}": value for name, value in metrics.items()}


def find_culprit(learner: Learner[Any], batches: Sequence[PackedBatch], batch_loss: LossOfBatch) -> str:
    """What is told of the first micro-batch that alone is not finite: the sum does not tell, so each is redone.

    Ranks do theirs at the same time; where one's loss is not finite it is that rank's, else it may be any of them.
    """
    optimizer = learner.optimizer
    assert optimizer is not None
    for batch in batches:
        optimizer.zero_grad()
        loss, _ = add_side_losses(batch_loss(learner.model, batch), 1.0, 1)
        optimizer.gradients.add(loss)
        norm, mine = optimizer.clip(), loss.item()
        value = learner.world.data.sum(mine)
        if not math.isfinite(value):
            what, guilty = f"loss is {value}", not math.isfinite(mine)
            break
        if not math.isfinite(norm):
            what, guilty = f"gradient norm is {norm}", True
            break
    else:
        what, guilty = "the sum of all gradients is not finite, though each is,", True
    optimizer.zero_grad()
    found = learner.world.data.all_gather((batch.names, count_places(batch)) if guilty else ((), 0))
    return describe([name for names, _ in found for name in names], sum(places for _, places in found), what)


def describe(names: Sequence[str], tokens: int, what: str) -> str:
    told = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return (
        f"{what} in the micro-batch of {told or 'unnamed sequences'} ({tokens} tokens); "
        "the weights were not touched, and the last checkpoint is whole. Lower optimizer.lr, or look at these "
        "sequences"
    )
