"""Packing preference pairs: the prompt once, then both answers, always in one micro-batch.

A prompt of 100 tokens with answers of 20 and 30 is 150 tokens instead of 250. What both sequences have before their
first loss is shared as far as it is equal; answers that begin alike are packed each on its own.

Legend: P pairs; 2: the chosen, then the rejected answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from foresail.data.packing import Segment, check, pack_batch
from foresail.records import PackedBatch, PackedPairs, TrainPair
from foresail.world import ContextGroup


@dataclass(frozen=True, kw_only=True)
class PairPlan:
    """Pairs of one micro-batch, by their numbers, and how many tokens of each pair are packed once."""

    members: tuple[int, ...]
    shared: tuple[int, ...]


def plan_pairs(pairs: Sequence[TrainPair], *, max_tokens: int, share_from: float | None) -> list[PairPlan]:
    """Pairs of 3, 9 and 4 tokens with max_tokens 10 -> batches of [9] and [4, 3]: longest first.

    With `share_from` prompts are packed once where that saves at least this share of the tokens.
    """
    for pair in pairs:
        for sequence in (pair.chosen, pair.rejected):
            check(0, sequence, max_tokens)
    shared = [0 if share_from is None else shared_tokens(pair) for pair in pairs]
    whole = sum(pair_tokens(pair, 0) for pair in pairs)
    if share_from is not None and sum(shared) < share_from * whole:
        shared = [0] * len(pairs)
    sizes = [pair_tokens(pair, both) for pair, both in zip(pairs, shared, strict=True)]
    plans: list[list[int]] = []
    filled: list[int] = []
    for number in sorted(range(len(pairs)), key=lambda number: -sizes[number]):
        if sizes[number] > max_tokens:
            raise ValueError(
                f"{pairs[number].name or f'pair {number}'} has {sizes[number]} tokens, more than a micro-batch of "
                f"{max_tokens}; set micro_batch_tokens = {sizes[number]} or more, or shorten it"
            )
        first = next((i for i, tokens in enumerate(filled) if tokens + sizes[number] <= max_tokens), None)
        if first is None:
            plans.append([number])
            filled.append(sizes[number])
        else:
            plans[first].append(number)
            filled[first] += sizes[number]
    return [PairPlan(members=tuple(plan), shared=tuple(shared[number] for number in plan)) for plan in plans]


def shared_tokens(pair: TrainPair) -> int:
    """How many tokens before the first loss are equal in both sequences."""
    first_loss = min(sequence.loss_mask.index(1) for sequence in (pair.chosen, pair.rejected))
    both = zip(pair.chosen.ids[:first_loss], pair.rejected.ids[:first_loss], strict=True)
    return next((place for place, (a, b) in enumerate(both) if a != b), first_loss)


def pair_tokens(pair: TrainPair, shared: int) -> int:
    return len(pair.chosen.ids) + len(pair.rejected.ids) - shared


def pack_pairs(
    pairs: Sequence[TrainPair],
    plan: PairPlan,
    *,
    num_pairs: int,
    chosen_tokens: int,
    device: str | torch.device,
    context: ContextGroup | None = None,
) -> PackedBatch:
    """One micro-batch of an update of `num_pairs` pairs on all ranks, whose chosen answers have `chosen_tokens`.

    A pair weighs 1 / num_pairs; a token of a chosen answer 1 / chosen_tokens, for a term that imitates it, one of a
    rejected answer nothing.
    """
    own = [pairs[number] for number in plan.members]
    sequences = [sequence for pair in own for sequence in (pair.chosen, pair.rejected)]
    weights = [1 / chosen_tokens, 0.0] * len(own)
    batch = pack_batch(sequences, weights, cut_pairs(own, plan.shared), device, context)
    first = sum(both > 0 for both in plan.shared)
    roots = first + 2 * sum(both == 0 for both in plan.shared)
    segments_P2 = []
    for both in plan.shared:
        where = roots if both else first
        segments_P2.append([where, where + 1])
        roots, first = (roots + 2, first) if both else (roots, first + 2)
    refs = [pair.ref_logprobs for pair in own]
    packed = PackedPairs(
        segments_P2=torch.tensor(segments_P2).to(device),
        weights_P=torch.full((len(own),), 1 / num_pairs).to(device),
        margins_P=torch.tensor([pair.margin or 0.0 for pair in own]).to(device),
        ref_logprobs_P2=None if None in refs else torch.tensor(refs, dtype=torch.float32).to(device),
    )
    return replace(batch, pairs=packed)


def cut_pairs(pairs: Sequence[TrainPair], shared: Sequence[int]) -> list[Segment]:
    """Shared prompts, then sequences without one, then the answers to the shared prompts."""
    lengths = [(len(pair.chosen.ids), len(pair.rejected.ids)) for pair in pairs]
    prompts = [number for number, both in enumerate(shared) if both]
    segments = [Segment(number=2 * number, start=0, end=shared[number]) for number in prompts]
    for number, both in enumerate(shared):
        if not both:
            segments += [
                Segment(number=2 * number + side, start=0, end=lengths[number][side]) for side in (0, 1)
            ]
    for parent, number in enumerate(prompts):
        segments += [
            Segment(number=2 * number + side, start=shared[number], end=lengths[number][side], parent=parent)
            for side in (0, 1)
        ]
    return segments


def no_pairs(batch: PackedBatch, *, with_reference: bool) -> PackedBatch:
    """An idle micro-batch, with what the others have."""
    device = batch.ids_T.device
    empty = PackedPairs(
        segments_P2=torch.zeros((0, 2), dtype=torch.int64, device=device),
        weights_P=torch.zeros(0, device=device),
        margins_P=torch.zeros(0, device=device),
        ref_logprobs_P2=torch.zeros((0, 2), device=device) if with_reference else None,
    )
    return replace(batch, pairs=empty)
