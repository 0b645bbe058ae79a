"""The log-probability of every token of given sequences, by packed passes without gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.records import TrainSequence
from foresail.train.dealing import pack_share
from foresail.train.step import token_logprobs
from foresail.train.updates import WORTH_SHARING
from foresail.world import ONE_PROCESS, World, context_size


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
    longest = max((len(sequence.ids) for sequence in sequences), default=0)
    batches = pack_share(
        [replace(sequence, name=str(number)) for number, sequence in enumerate(sequences)],
        [1.0] * len(sequences),
        world,
        max_tokens=max(micro_batch_tokens, -(-longest // context_size(world))),
        device=device,
        share_from=WORTH_SHARING[device.type],
    )
    # nothing is read before the last batch is under way
    scored = [(batch.names, token_logprobs(model, batch, temperature)[0].float()) for batch in batches]
    own: dict[int, Tensor] = {}
    for names, logprobs_M in scored:
        numbers = [int(name) for name in names]  # in the order of their tokens
        targets = [np.flatnonzero(sequences[number].loss_mask) for number in numbers]
        parts = logprobs_M.cpu().split([len(places) for places in targets])
        for number, places, part in zip(numbers, targets, parts, strict=True):
            own[number] = torch.full((len(sequences[number].ids),), math.nan)
            own[number][torch.from_numpy(places)] = part
    found = {number: logprobs_T for share in world.data.gather(own) for number, logprobs_T in share.items()}
    return [
        found[number] if number in found else torch.full((len(sequence.ids),), math.nan)
        for number, sequence in enumerate(sequences)
    ]
