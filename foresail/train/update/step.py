"""One optimiser update over packed micro-batches, the same for every stage.

A loss is a sum over tokens whose weights already hold the normaliser of the whole update, so how the
sequences are split into micro-batches changes nothing but rounding.

Legend: T tokens, M those with a loss, D hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.mtp import Ahead, MtpHeads
from foresail.model.output import NOTHING, add_up, is_extreme
from foresail.model.packed import score_tokens
from foresail.model.router import EXPERT_LOAD
from foresail.records import PackedBatch, RunStopped
from foresail.train.auxiliary.mtp import MtpLoss, read_ahead
from foresail.train.learner import Learner
from foresail.world import World

Terms = dict[str, Tensor]
Loss = Callable[[Tensor, PackedBatch], tuple[Tensor, Terms]]  # of the log-probabilities of the tokens


class BatchLoss(NamedTuple):
    """A micro-batch's share of the update's loss, and other terms to log: sums over its tokens, or the maximum
    where the name ends in _max. Losses, statistics and counts come from the model's layers.
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


def token_loss(
    model: Decoder,
    batch: PackedBatch,
    *,
    loss: Loss,
    temperature: float = 1.0,
    mtp: MtpLoss | None = None,
) -> BatchLoss:
    """A loss of the log-probabilities alone; the entropy is logged with its terms."""
    ahead = ahead_of(batch, mtp, temperature)
    (logprobs_M, entropy_M), *side = score_tokens(model, batch, temperature, ahead=ahead)
    value, terms = loss(logprobs_M, batch)
    return BatchLoss(value, {"entropy": entropy_M.sum(), **terms}, *side)


def ahead_of(batch: PackedBatch, mtp: MtpLoss | None, temperature: float) -> Ahead[BatchLoss] | None:
    """The loss of the MTP layers, read during the main pass, where they learn."""
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
            part = batch_loss(learner.model, batch)
            loss, terms = add_side_losses(part, count_places(batch) / num_places, num_tokens)
            optimizer.gradients.add(loss)
            for name, term in {"loss": loss, **terms}.items():
                term = term.detach()
                sums[name] = merge(name, sums[name], term) if name in sums else term
            counts = add_up((counts, part.counts if count_places(batch) else cleared(part.counts)))
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


def add_side_losses(part: BatchLoss, share: float, num_tokens: int) -> tuple[Tensor, Terms]:
    """The loss plus the layers' losses, and all terms. A layer's loss is a mean over its pass, which has `share`
    of the update's tokens; as a term it becomes a sum over tokens.
    """
    loss = part.loss
    for value in part.losses.values():
        loss = loss + share * value
    side = {
        name: value.detach() * (1 if is_extreme(name) else share * num_tokens)
        for name, value in (*part.losses.items(), *part.statistics.items())
    }
    if part.ahead is not None:
        more, terms = add_side_losses(part.ahead, share, num_tokens)
        loss, side = loss + more, side | terms
    return loss, {**part.terms, **side}


def merge(name: str, before: Tensor, term: Tensor) -> Tensor:
    """Terms of two micro-batches: the sum, or the maximum where the name ends in _max."""
    return torch.maximum(before, term) if is_extreme(name) else before + term


def total_up(
    terms: Terms, counts: Mapping[str, Tensor], world: World
) -> tuple[dict[str, float], dict[str, Tensor]]:
    """As `merge`, over all ranks, and off the device, which is waited for once; counts are float32, exact up to
    16 million.
    """
    values = [*terms.values(), *counts.values()]
    local = torch.cat([value.float().flatten() for value in values])
    reduced = torch.stack([world.sum(local), world.max(local)]).cpu()
    sums, peaks = reduced[:, : len(terms)].tolist()
    totals = {
        name: peak if is_extreme(name) else total
        for name, total, peak in zip(terms, sums, peaks, strict=True)
    }
    parts = reduced[0, len(terms) :].split([count.numel() for count in counts.values()])
    return totals, {
        name: part.view(count.shape) for (name, count), part in zip(counts.items(), parts, strict=True)
    }


def cleared(counts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """An idle micro-batch's counts: zeros, so that every rank has equally many numbers."""
    return {name: torch.zeros_like(count) for name, count in counts.items()}


def prefixed(prefix: str, metrics: Mapping[str, float]) -> dict[str, float]:
    """prefixed("actor", {"loss": 1, "sft/nll": 2}) -> {"actor/loss": 1, "sft/nll": 2}."""
    return {name if "/" in name else f"{prefix}/{name}": value for name, value in metrics.items()}


def find_culprit(learner: Learner[Any], batches: Sequence[PackedBatch], batch_loss: LossOfBatch) -> str:
    """A message about the first micro-batch whose own loss or gradient is not finite; each is computed again.

    All ranks do this at the same time. A loss that is not finite names its rank; a gradient is summed over ranks.
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
    parts = learner.world.data.all_gather((batch.names, count_places(batch)) if guilty else ((), 0))
    return culprit_message(
        [name for names, _ in parts for name in names], sum(places for _, places in parts), what
    )


def culprit_message(names: Sequence[str], tokens: int, what: str) -> str:
    listed = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
    return (
        f"{what} in the micro-batch of {listed or 'unnamed sequences'} ({tokens} tokens); "
        "the weights were not touched, and the last checkpoint is whole. Lower optimizer.lr, or look at these "
        "sequences"
    )
