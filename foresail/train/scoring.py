"""The log-probability of every token of given sequences, by packed passes without gradients."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import torch

from foresail.data.packing import pack
from foresail.model.decoder import Decoder
from foresail.records import TrainSequence
from foresail.train.step import token_logprobs
from foresail.train.updates import WORTH_SHARING

PLACE = "place"  # side data: the number of a token among those of all sequences


@torch.no_grad()
def score_sequences(
    model: Decoder,
    sequences: Sequence[TrainSequence],
    *,
    temperature: float,
    micro_batch_tokens: int,
    device: torch.device,
) -> list[list[float]]:
    """Parallel to each sequence's ids; NaN where it has no loss. Equal prompts are computed once."""
    numbered, total = [], 0
    for sequence in sequences:
        places = list(range(total, total + len(sequence.ids)))
        numbered.append(replace(sequence, side={**sequence.side, PLACE: places}))
        total += len(sequence.ids)
    batches = pack(
        numbered,
        [1.0] * len(numbered),
        max_tokens=max([micro_batch_tokens, *(len(sequence.ids) for sequence in sequences)]),
        device=device,
        share_from=WORTH_SHARING[device.type],
    )
    found = torch.full((total,), math.nan)
    for batch in batches:
        side = {**batch.side}
        places_M = side.pop(PLACE)[batch.targets_M]
        logprobs_M, _ = token_logprobs(model, replace(batch, side=side), temperature)
        found[places_M.cpu()] = logprobs_M.float().cpu()
    lengths = [len(sequence.ids) for sequence in sequences]
    return [part.tolist() for part in found.split(lengths)]
