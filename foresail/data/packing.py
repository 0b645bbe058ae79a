"""Laying sequences end to end: micro-batches without padding.

Legend: T tokens of a batch, S its sequences, M its tokens with a loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, chain

import numpy as np
import torch
from torch import Tensor

from foresail.records import PackedBatch, TrainSequence

TOKEN_FIELDS = ("advantages", "rewards", "old_logprobs", "rollout_logprobs", "ref_logprobs")


def pack(
    sequences: Sequence[TrainSequence],
    weights: Sequence[float],
    *,
    max_tokens: int,
    device: str | torch.device = "cpu",
) -> list[PackedBatch]:
    """Batches of at most `max_tokens` tokens; `weights[i]` is that of each loss token of `sequences[i]`.

    Lengths [3, 9, 4] with max_tokens 10 -> batches of lengths [9] and [4, 3]: longest first, so that those of
    one batch are alike. Sequences without a loss token are left out.
    """
    assert len(sequences) == len(weights), f"{len(sequences)} sequences but {len(weights)} weights"
    for index, sequence in enumerate(sequences):
        check(index, sequence, max_tokens)
    kept = [index for index, sequence in enumerate(sequences) if any(sequence.loss_mask)]
    bins: list[list[int]] = []
    filled = max_tokens
    for index in sorted(kept, key=lambda index: -len(sequences[index].ids)):
        length = len(sequences[index].ids)
        if filled + length > max_tokens:
            bins.append([])
            filled = 0
        bins[-1].append(index)
        filled += length
    return [lay([sequences[i] for i in bin], [weights[i] for i in bin], device) for bin in bins]


def lay(sequences: list[TrainSequence], weights: list[float], device: str | torch.device) -> PackedBatch:
    """One batch of these sequences, in this order."""
    lengths = [len(sequence.ids) for sequence in sequences]
    starts_S1 = np.fromiter(accumulate(lengths, initial=0), np.int64, len(lengths) + 1)
    sequence_T = np.repeat(np.arange(len(lengths)), lengths)
    ids_T = join([sequence.ids for sequence in sequences], np.int64)
    targets_M = np.flatnonzero(join([sequence.loss_mask for sequence in sequences], np.int64))
    sequence_M = sequence_T[targets_M]

    def place(array: np.ndarray) -> Tensor:
        return torch.from_numpy(array).to(device)

    def place_field(name: str) -> Tensor | None:
        lists = [getattr(sequence, name) for sequence in sequences]
        assert len({values is None for values in lists}) == 1, f"only some sequences have {name}"
        return None if lists[0] is None else place(join(lists, np.float32)[targets_M])

    return PackedBatch(
        ids_T=place(ids_T),
        positions_T=place(np.arange(len(ids_T)) - starts_S1[sequence_T]),
        starts_S1=torch.from_numpy(starts_S1),  # on the host, where lengths are read
        targets_M=place(targets_M),
        sequence_M=place(sequence_M),
        weights_M=place(np.asarray(weights, np.float32)[sequence_M]),
        advantages_M=place_field("advantages"),
        rewards_M=place_field("rewards"),
        old_logprobs_M=place_field("old_logprobs"),
        rollout_logprobs_M=place_field("rollout_logprobs"),
        ref_logprobs_M=place_field("ref_logprobs"),
        names=tuple(sequence.name for sequence in sequences),
    )


def join(lists: list[list[int]] | list[list[float]], dtype: type) -> np.ndarray:
    return np.fromiter(chain.from_iterable(lists), dtype, sum(map(len, lists)))


def check(index: int, sequence: TrainSequence, max_tokens: int) -> None:
    length, who = len(sequence.ids), sequence.name or f"sequence {index}"
    for name in ("loss_mask", *TOKEN_FIELDS):
        values = getattr(sequence, name)
        assert values is None or len(values) == length, f"{who}: {len(values)} {name} for {length} ids"
    if length > max_tokens:
        raise ValueError(
            f"{who} has {length} tokens, more than a micro-batch of {max_tokens}; "
            f"set micro_batch_tokens = {length} or more, or shorten it"
        )
    if length and sequence.loss_mask[0]:
        raise ValueError(f"{who} has a loss on its first token, which nothing predicts; mask it out")
