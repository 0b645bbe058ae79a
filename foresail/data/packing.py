"""Packing sequences end to end: micro-batches without padding.

Samples of one problem begin with the same prompt. It may be packed once, before the answers of all of them: four
answers of 20 tokens to a prompt of 100 are 180 tokens instead of 480, and teach the same.

Several ranks may compute one batch together, each an equal slice of its tokens (`cut_slice`).

Legend: T tokens of a batch, S its segments, M its tokens with a loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foresail.records import BatchSlice, PackedBatch, PackedObserved, TrainSequence
from foresail.world import ContextGroup

TOKEN_FIELDS = ("advantages", "rewards", "old_logprobs", "rollout_logprobs", "ref_logprobs", "fresh")
MASKS = ("loss_mask", "observed")


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """Sequences, by their numbers, whose first `shared` tokens are equal and packed once; 0: a single one."""

    members: tuple[int, ...]
    shared: int
    tokens: int
    longest: int


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Tokens `start` to `end` of a sequence, after all of another segment where there is a `parent`."""

    number: int
    start: int
    end: int
    parent: int = -1


def pack(
    sequences: Sequence[TrainSequence],
    weights: Sequence[float],
    *,
    max_tokens: int,
    device: str | torch.device = "cpu",
    share_from: float | None = None,
) -> list[PackedBatch]:
    """Batches of at most `max_tokens` tokens; `weights[i]` is that of each loss token of `sequences[i]`.

    Lengths [3, 9, 4] with max_tokens 10 -> batches of lengths [9] and [4, 3]: longest first, so that those of
    one batch are alike. Sequences without a loss token are left out. With `share_from` prompts are packed once
    where that saves at least this share of the tokens.
    """
    assert len(sequences) == len(weights), f"{len(sequences)} sequences but {len(weights)} weights"
    return [
        pack_batch(sequences, weights, segments, device)
        for segments in plan_batches(sequences, max_tokens=max_tokens, share_from=share_from)
    ]


def plan_batches(
    sequences: Sequence[TrainSequence], *, max_tokens: int, share_from: float | None = None
) -> list[list[Segment]]:
    """The bundles of each batch of `pack`; `pack_batch` builds one."""
    for index, sequence in enumerate(sequences):
        check(index, sequence, max_tokens)
    learnt = [index for index, sequence in enumerate(sequences) if any(sequence.loss_mask)]
    bundles = [single_bundle(sequences, number) for number in learnt]
    if share_from is not None:
        shared = list(share_prompts(sequences, learnt, max_tokens))
        if num_tokens(shared) <= (1 - share_from) * num_tokens(bundles):
            bundles = shared
    batches: list[list[Bundle]] = []
    for bundle in sorted(bundles, key=lambda bundle: -bundle.longest):
        first = next((batch for batch in batches if num_tokens(batch) + bundle.tokens <= max_tokens), None)
        if first is None:
            batches.append([bundle])
        else:
            first.append(bundle)
    return [list(cut_segments(sequences, batch)) for batch in batches]


def num_tokens(bundles: Sequence[Bundle]) -> int:
    return sum(bundle.tokens for bundle in bundles)


def single_bundle(sequences: Sequence[TrainSequence], number: int) -> Bundle:
    length = len(sequences[number].ids)
    return Bundle(members=(number,), shared=0, tokens=length, longest=length)


def share_prompts(
    sequences: Sequence[TrainSequence], indices: list[int], max_tokens: int
) -> Iterator[Bundle]:
    """Bundles of sequences with equal tokens before their first loss, as many together as fit."""
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for number in indices:
        sequence = sequences[number]
        by_prompt.setdefault(tuple(sequence.ids[: sequence.loss_mask.index(1)]), []).append(number)
    for prompt, numbers in by_prompt.items():
        parts: list[list[int]] = []
        filled = max_tokens
        for number in numbers:
            length = len(sequences[number].ids) - len(prompt)
            if filled + length > max_tokens:
                parts.append([])
                filled = len(prompt)
            parts[-1].append(number)
            filled += length
        yield from (shared_bundle(sequences, part, len(prompt)) for part in parts)


def shared_bundle(sequences: Sequence[TrainSequence], numbers: list[int], shared: int) -> Bundle:
    if len(numbers) == 1:
        return single_bundle(sequences, numbers[0])
    lengths = [len(sequences[number].ids) for number in numbers]
    tokens = sum(lengths) - shared * (len(numbers) - 1)
    return Bundle(members=tuple(numbers), shared=shared, tokens=tokens, longest=max(lengths))


def cut_segments(sequences: Sequence[TrainSequence], bundles: list[Bundle]) -> Iterator[Segment]:
    """The segments in their order: shared prompts, single sequences, the answers to the shared prompts."""
    shared = [bundle for bundle in bundles if bundle.shared]
    for bundle in shared:
        yield Segment(number=bundle.members[0], start=0, end=bundle.shared)
    for bundle in bundles:
        if not bundle.shared:
            yield Segment(number=bundle.members[0], start=0, end=bundle.tokens)
    for parent, bundle in enumerate(shared):
        for number in bundle.members:
            yield Segment(number=number, start=bundle.shared, end=len(sequences[number].ids), parent=parent)


def pack_batch(
    sequences: Sequence[TrainSequence],
    weights: Sequence[float],
    segments: list[Segment],
    device: str | torch.device,
    context: ContextGroup | None = None,
) -> PackedBatch:
    """One batch of these segments, in this order; where a context group computes it, padded to equal slices."""
    lengths = [segment.end - segment.start for segment in segments]
    starts_S1 = np.fromiter(accumulate(lengths, initial=0), np.int64, len(lengths) + 1)
    num_tokens, parents_S = int(starts_S1[-1]), np.array([segment.parent for segment in segments])
    segment_T = np.repeat(np.arange(len(lengths)), lengths)
    offsets_S = np.array([segment.start for segment in segments]) - starts_S1[:-1]

    def gather(name: str, dtype: type) -> np.ndarray:
        lists = [
            getattr(sequences[segment.number], name)[segment.start : segment.end] for segment in segments
        ]
        return np.fromiter(chain.from_iterable(lists), dtype, num_tokens)

    ids_T, targets_M = gather("ids", np.int64), np.flatnonzero(gather("loss_mask", np.int64))
    segment_M = segment_T[targets_M]
    begins_M = (targets_M == starts_S1[segment_M]) & (parents_S[segment_M] >= 0)
    sources_M = np.where(begins_M, starts_S1[parents_S[segment_M] + 1], targets_M) - 1
    weights_S = np.array([weights[segment.number] for segment in segments], np.float32)
    positions_T = np.arange(num_tokens) + offsets_S[segment_T]
    padding = 0 if context is None else -num_tokens % context.size
    if padding:
        ids_T, positions_T = np.pad(ids_T, (0, padding)), np.pad(positions_T, (0, padding))
        starts_S1[-1] += padding  # causal: nothing in the last segment sees what stands behind it

    def place(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(device)

    def place_side() -> dict[str, Tensor]:
        sides = [(sequences[segment.number].side, segment.start, segment.end) for segment in segments]
        names = sides[0][0].keys()
        assert all(side.keys() == names for side, _, _ in sides), f"only some sequences have {[*names]}"
        values = {
            name: [v for side, start, end in sides for v in side[name][start:end]] + [None] * padding
            for name in names
        }
        return {name: place(fill_gaps(values_T)) for name, values_T in values.items()}

    def is_missing(name: str) -> bool:
        missing = {getattr(sequences[segment.number], name) is None for segment in segments}
        assert len(missing) == 1, f"only some sequences have {name}"
        return missing.pop()

    def place_field(name: str) -> Tensor | None:
        return None if is_missing(name) else place(gather(name, np.float32)[targets_M])

    def place_observed() -> PackedObserved | None:
        if is_missing("observed"):
            return None
        targets_O = np.flatnonzero(gather("observed", np.int64))  # never the first of a segment
        own = None if context is None else cut_slice(len(ids_T), targets_O - 1, context, device).own_R
        return PackedObserved(targets_O=place(targets_O), sources_O=place(targets_O - 1), own_R=own)

    return PackedBatch(
        ids_T=place(ids_T),
        positions_T=place(positions_T),
        # on the host, where lengths are read
        starts_S1=torch.from_numpy(starts_S1),
        parents_S=torch.from_numpy(parents_S) if (parents_S >= 0).any() else None,
        targets_M=place(targets_M),
        sources_M=place(sources_M),
        sequence_M=place(segment_M),
        weights_M=place(weights_S[segment_M]),
        advantages_M=place_field("advantages"),
        rewards_M=place_field("rewards"),
        old_logprobs_M=place_field("old_logprobs"),
        rollout_logprobs_M=place_field("rollout_logprobs"),
        ref_logprobs_M=place_field("ref_logprobs"),
        fresh_M=place_field("fresh"),
        side=place_side(),
        names=tuple(
            sequences[segment.number].name
            for number, segment in enumerate(segments)
            if number not in parents_S
        ),
        observed=place_observed(),
        slice=None if context is None else cut_slice(len(ids_T), sources_M, context, device),
    )


def cut_slice(
    num_tokens: int, sources_M: np.ndarray, context: ContextGroup, device: str | torch.device
) -> BatchSlice:
    """A loss is computed on the rank that has its source token. Computed on the host, to avoid a device sync."""
    each = num_tokens // context.size
    tokens = slice(context.rank * each, (context.rank + 1) * each)
    own_R = np.flatnonzero((sources_M >= tokens.start) & (sources_M < tokens.stop))
    return BatchSlice(tokens=tokens, own_R=torch.from_numpy(own_R).to(device), group=context.group)


def check(index: int, sequence: TrainSequence, max_tokens: int) -> None:
    length, who = len(sequence.ids), sequence.name or f"sequence {index}"
    for name in (*MASKS, *TOKEN_FIELDS):
        values = getattr(sequence, name)
        assert values is None or len(values) == length, f"{who}: {len(values)} {name} for {length} ids"
    for name, values in sequence.side.items():
        assert len(values) == length, f"{who}: {len(values)} {name} for {length} ids"
    if length > max_tokens:
        raise ValueError(
            f"{who} has {length} tokens, more than a micro-batch of {max_tokens}; "
            f"set micro_batch_tokens = {length} or more, or shorten it"
        )
    if length and sequence.loss_mask[0]:
        raise ValueError(f"{who} has a loss on its first token, which nothing predicts; mask it out")


def fill_gaps(values: list[Any]) -> np.ndarray:
    """fill_gaps([None, [3, 5]]) -> [[-1, -1], [3, 5]]: missing values, of prompts say, are -1."""
    example = np.asarray(next((value for value in values if value is not None), 0))
    gap = np.full_like(example, -1)
    filled = np.stack([gap if value is None else value for value in values])
    return filled if filled.dtype != np.float64 else filled.astype(np.float32)
