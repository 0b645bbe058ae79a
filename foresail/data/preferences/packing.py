"""Packs preferences: both answers of a pair with their prompt once, always in one micro-batch.

A prompt of 100 tokens with answers of 20 and 30 is 150 tokens instead of 250. Equal tokens before the first loss
are shared; equal beginnings of answers are not. An answer that was judged alone is packed with its prompt.

Legend: P pairs or answers judged alone; K answers of each: 2 (the chosen, then the rejected one) or 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from foresail.data.packing import Segment, check, pack_batch
from foresail.records import PackedAnswers, PackedBatch, Preference, TrainAnswer
from foresail.world import ContextGroup


@dataclass(frozen=True, kw_only=True)
class AnswerPlan:
    """Preferences of one micro-batch, by their numbers, and how many tokens of each are packed once."""

    members: tuple[int, ...]
    shared: tuple[int, ...]


def plan_answers(
    preferences: Sequence[Preference], *, max_tokens: int, share_from: float | None
) -> list[AnswerPlan]:
    """Of 3, 9 and 4 tokens with max_tokens 10 -> batches of [9] and [4, 3]: longest first.

    With `share_from` prompts are packed once where that saves at least this share of the tokens.
    """
    for preference in preferences:
        for sequence in preference.answers:
            check(0, sequence, max_tokens)
    shared = [0 if share_from is None else shared_tokens(preference) for preference in preferences]
    unshared = sum(packed_tokens(preference, 0) for preference in preferences)
    if share_from is not None and sum(shared) < share_from * unshared:
        shared = [0] * len(preferences)
    sizes = [packed_tokens(preference, both) for preference, both in zip(preferences, shared, strict=True)]
    plans: list[list[int]] = []
    filled: list[int] = []
    for number in sorted(range(len(preferences)), key=lambda number: -sizes[number]):
        if sizes[number] > max_tokens:
            raise ValueError(
                f"{preferences[number].name or f'pair {number}'} has {sizes[number]} tokens, more than a "
                f"micro-batch of {max_tokens}; set micro_batch_tokens = {sizes[number]} or more, or shorten it"
            )
        first = next((i for i, tokens in enumerate(filled) if tokens + sizes[number] <= max_tokens), None)
        if first is None:
            plans.append([number])
            filled.append(sizes[number])
        else:
            plans[first].append(number)
            filled[first] += sizes[number]
    return [
        AnswerPlan(members=tuple(plan), shared=tuple(shared[number] for number in plan)) for plan in plans
    ]


def shared_tokens(preference: Preference) -> int:
    """How many tokens before the first loss are equal in both sequences of a pair; none of a single answer."""
    if len(preference.answers) == 1:
        return 0
    one, other = preference.answers
    first_loss = min(sequence.loss_mask.index(1) for sequence in (one, other))
    both = zip(one.ids[:first_loss], other.ids[:first_loss], strict=True)
    return next((place for place, (a, b) in enumerate(both) if a != b), first_loss)


def packed_tokens(preference: Preference, shared: int) -> int:
    return sum(len(sequence.ids) for sequence in preference.answers) - shared


def is_good(preference: Preference) -> bool:
    """Whether its first answer is to be imitated: a pair's always, a judged answer if it is desirable."""
    return not isinstance(preference, TrainAnswer) or preference.desirable


def good_tokens(preferences: Sequence[Preference]) -> int:
    """Tokens with a loss in the answers to imitate."""
    return sum(sum(one.answers[0].loss_mask) for one in preferences if is_good(one))


def pack_answers(
    preferences: Sequence[Preference],
    plan: AnswerPlan,
    *,
    count: int,
    good: int,
    device: str | torch.device,
    context: ContextGroup | None = None,
) -> PackedBatch:
    """One micro-batch of an update of `count` preferences on all ranks, whose good answers have `good` tokens.

    A preference weighs 1 / count; a token of a good answer 1 / good, for a term that imitates it, one of another
    answer nothing.
    """
    members = [preferences[number] for number in plan.members]
    sequences = [sequence for one in members for sequence in one.answers]
    each = len(members[0].answers)
    weights = [1 / good if is_good(one) and place == 0 else 0.0 for one in members for place in range(each)]
    batch = pack_batch(sequences, weights, cut_answers(members, plan.shared), device, context)
    first = sum(both > 0 for both in plan.shared)
    roots = first + each * sum(both == 0 for both in plan.shared)
    segments_PK = []
    for both in plan.shared:
        where = roots if both else first
        segments_PK.append([*range(where, where + each)])
        roots, first = (roots + each, first) if both else (roots, first + each)
    # the reference may have logprobs of a second answer too
    labels = [one.desirable for one in members if isinstance(one, TrainAnswer)]
    refs = [None if one.ref_logprobs is None else one.ref_logprobs[:each] for one in members]
    packed = PackedAnswers(
        segments_PK=torch.tensor(segments_PK).to(device),
        weights_P=torch.full((len(members),), 1 / count).to(device),
        margins_P=torch.tensor([getattr(one, "margin", None) or 0.0 for one in members]).to(device),
        desirable_P=torch.tensor(labels).to(device) if labels else None,
        ref_logprobs_PK=None if None in refs else torch.tensor(refs, dtype=torch.float32).to(device),
    )
    return replace(batch, answers=packed)


def cut_answers(preferences: Sequence[Preference], shared: Sequence[int]) -> list[Segment]:
    """Shared prompts, then sequences without one, then the answers to the shared prompts."""
    lengths = [[len(sequence.ids) for sequence in one.answers] for one in preferences]
    each = len(lengths[0])
    prompts = [number for number, both in enumerate(shared) if both]
    segments = [Segment(number=each * number, start=0, end=shared[number]) for number in prompts]
    for number, both in enumerate(shared):
        if not both:
            segments += [
                Segment(number=each * number + place, start=0, end=lengths[number][place])
                for place in range(each)
            ]
    for parent, number in enumerate(prompts):
        segments += [
            Segment(
                number=each * number + place, start=shared[number], end=lengths[number][place], parent=parent
            )
            for place in range(each)
        ]
    return segments


def no_answers(batch: PackedBatch, like: Preference) -> PackedBatch:
    """An idle micro-batch, with the fields of the others."""
    device, each = batch.ids_T.device, len(like.answers)
    empty = PackedAnswers(
        segments_PK=torch.zeros((0, each), dtype=torch.int64, device=device),
        weights_P=torch.zeros(0, device=device),
        margins_P=torch.zeros(0, device=device),
        desirable_P=torch.zeros(0, dtype=torch.bool, device=device)
        if isinstance(like, TrainAnswer)
        else None,
        ref_logprobs_PK=None if like.ref_logprobs is None else torch.zeros((0, each), device=device),
    )
    return replace(batch, answers=empty)
