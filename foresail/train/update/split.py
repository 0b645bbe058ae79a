"""An update's sequences split over the ranks: about as many tokens each, and equally many micro-batches.

    batches = [*pack_share(sequences, weights, world, max_tokens=8192, device=device)]

Ranks here are those of `World.data`: where several form a context group, they get the same micro-batches, and each
computes its slice of every one.

Every rank knows all sequences of the update, and computes its own. All ranks gather weights and sum gradients
together, so they need equally many passes: a rank with fewer micro-batches adds idle ones without a loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch

from foresail.data.packing import Segment, pack_batch, plan_batches
from foresail.records import PackedBatch, TrainSequence
from foresail.world import ContextGroup, World, context_size

UNEVEN = 1.05  # the fullest rank's tokens over the mean, up to which answers to one prompt stay together


def split_over_ranks(sequences: Sequence[TrainSequence], ranks: int, *, together: bool) -> list[list[int]]:
    """Numbers of the sequences of each rank, in their order. Lengths [5, 3, 3, 1] on two ranks: [[0, 3], [1, 2]].

    With `together`, sequences that begin with the same prompt go to one rank, where it is packed once, unless that
    leaves some rank with far more than others. Sequences without a loss go to no rank.
    """
    learned = [number for number, sequence in enumerate(sequences) if any(sequence.loss_mask)]
    lengths = [len(sequence.ids) for sequence in sequences]
    if together and ranks > 1:
        prompts: dict[tuple[int, ...], list[int]] = {}
        for number in learned:
            sequence = sequences[number]
            prompts.setdefault(tuple(sequence.ids[: sequence.loss_mask.index(1)]), []).append(number)
        sizes = [
            sum(lengths[number] - len(prompt) for number in group) + len(prompt)
            for prompt, group in prompts.items()
        ]
        shares = longest_first(sizes, ranks)
        if unevenness([sum(sizes[group] for group in share) for share in shares]) <= UNEVEN:
            groups = [*prompts.values()]
            return [sorted(number for group in share for number in groups[group]) for share in shares]
    dealt = longest_first([lengths[number] for number in learned], ranks)
    return [sorted(learned[place] for place in share) for share in dealt]


def longest_first(sizes: Sequence[int], ranks: int) -> list[list[int]]:
    """The longest first, each to the rank that has least: longest_first([5, 3, 3, 1], 2) -> [[0, 3], [1, 2]]."""
    shares: list[list[int]] = [[] for _ in range(ranks)]
    totals = [0] * ranks
    for place in sorted(range(len(sizes)), key=lambda place: -sizes[place]):
        rank = min(range(ranks), key=lambda rank: totals[rank])
        shares[rank].append(place)
        totals[rank] += sizes[place]
    return shares


def unevenness(totals: Sequence[int]) -> float:
    """The greatest over the mean: unevenness([3, 1]) -> 1.5."""
    return max(totals) * len(totals) / max(1, sum(totals))


def pack_share(
    sequences: Sequence[TrainSequence],
    weights: Sequence[float],
    world: World,
    *,
    max_tokens: int,
    device: torch.device,
    share_from: float | None = None,
) -> Iterator[PackedBatch]:
    """This rank's micro-batches, as many as the rank with most has; see `pack`. It computes `max_tokens` of each at
    the most, so that a micro-batch has as many for every member of a context group.

    A generator: each is packed while the device computes the one before.
    """
    data, context = world.data, world.context
    mine = split_over_ranks(sequences, data.size, together=share_from is not None)[data.rank]
    local, local_weights = [sequences[number] for number in mine], [weights[number] for number in mine]
    plans = plan_batches(local, max_tokens=max_tokens * context_size(world), share_from=share_from)
    num_idle = data.max(len(plans)) - len(plans)
    num_observed = sum(sum(sequence.observed or ()) for sequence in sequences)
    finish = partial(
        with_update_totals, of_update=num_observed, tokens=sum(sum(one.loss_mask) for one in sequences)
    )
    yield from (finish(pack_batch(local, local_weights, segments, device, context)) for segments in plans)
    yield from (finish(idle_batch(sequences, device, context)) for _ in range(num_idle))


def with_update_totals(batch: PackedBatch, *, of_update: int, tokens: int) -> PackedBatch:
    """A micro-batch with tokens of an environment gets their number in the whole update."""
    if batch.observed is None:
        return batch
    return replace(batch, observed=replace(batch.observed, of_update=of_update, tokens_of_update=tokens))


def idle_batch(
    sequences: Sequence[TrainSequence], device: torch.device, context: ContextGroup | None = None
) -> PackedBatch:
    """One token and no loss, with whatever fields the others have."""
    assert not sequences[0].loss_mask[0], "nothing predicts a first token"
    token = Segment(number=0, start=0, end=1)
    return replace(pack_batch(sequences[:1], [0.0], [token], device, context), names=())


def balance_metrics(updates: Sequence[Sequence[PackedBatch]], world: World) -> dict[str, float]:
    """How far the ranks' tokens are apart: the fullest rank's over the mean, 1 where all have as many."""
    data = world.data
    if data.size == 1:
        return {}
    mine = sum(batch.ids_T.numel() for batches in updates for batch in batches)
    return {"perf/rank_imbalance": data.max(mine) * data.size / data.sum(mine)}
