"""The log-probability of every token of given sequences, by packed passes without gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from foresail.data.packing import pack_lazily
from foresail.model.decoder import Decoder
from foresail.records import PackedBatch, TrainSequence
from foresail.train.dealing import deal, with_idle
from foresail.train.step import token_logprobs
from foresail.train.updates import WORTH_SHARING
from foresail.world import ONE_PROCESS, World


@torch.no_grad()
def score_sequences(
    model: Decoder,
    sequences: Sequence[TrainSequence],
    *,
    temperature: float,
    micro_batch_tokens: int,
    device: torch.device,
    world: World = ONE_PROCESS,
) -> list[Tensor]:
    """Parallel to each sequence's ids, on the host; NaN where it has no loss. Equal prompts are computed once.

    Ranks, which all have the sequences, compute a share each and get all of it.
    """
    numbered = [replace(sequence, name=str(number)) for number, sequence in enumerate(sequences)]
    own = numbered
    if world.size > 1:
        own = [numbered[number] for number in deal(sequences, world.size, together=True)[world.rank]]
    batches: Iterable[PackedBatch] = pack_lazily(
        own,
        [1.0] * len(own),
        max_tokens=max([micro_batch_tokens, *(len(sequence.ids) for sequence in sequences)]),
        device=device,
        share_from=WORTH_SHARING[device.type],
    )
    if world.size > 1:
        batches = with_idle([*batches], sequences, world, device)
    # nothing is read before the last batch is under way
    scored = [(batch.names, token_logprobs(model, batch, temperature)[0].float()) for batch in batches]
    found = {int(sequence.name): torch.full((len(sequence.ids),), math.nan) for sequence in own}
    for names, logprobs_M in scored:
        numbers = [int(name) for name in names]  # in the order of their tokens
        targets = [np.flatnonzero(sequences[number].loss_mask) for number in numbers]
        parts = logprobs_M.cpu().split([len(places) for places in targets])
        for number, places, part in zip(numbers, targets, parts, strict=True):
            found[number][torch.from_numpy(places)] = part
    of_all = {number: scores for share in world.gather(found) for number, scores in share.items()}
    nothing = [torch.full((len(sequence.ids),), math.nan) for sequence in sequences]
    return [of_all.get(number, nothing[number]) for number in range(len(sequences))]
