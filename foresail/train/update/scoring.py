"""The log-probability of every token of sequences, by packed passes without gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.packed import token_logprobs
from foresail.records import TrainSequence
from foresail.train.trainer import Trainer
from foresail.train.update.batches import WORTH_SHARING
from foresail.train.update.split import pack_share
from foresail.world import ONE_PROCESS, World, context_size

Score = Callable[[Sequence[TrainSequence]], Sequence[Tensor]]  # log-probabilities, parallel to ids


def scorer(trainer: Trainer[Any], model: Decoder, temperature: float = 1.0) -> Score:
    """`score_sequences` by this model, with the trainer's micro-batches, device and ranks."""
    return partial(
        score_sequences,
        model,
        temperature=temperature,
        micro_batch_tokens=trainer.recipe.micro_batch_tokens,
        device=trainer.device,
        world=trainer.world,
    )


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
    scored: list[Tensor] = []
    places: dict[int, np.ndarray] = {}  # of the losses, sequences in the order of their tokens
    for batch in batches:
        scored.append(token_logprobs(model, batch, temperature)[0].float())
        numbers = map(int, batch.names)  # looked at while the device computes
        places |= {number: np.flatnonzero(np.array(sequences[number].loss_mask)) for number in numbers}
    # all batches are launched before the host waits for the first result
    logprobs_M = torch.cat(scored).cpu().numpy() if scored else np.empty(0, np.float32)
    rank_logprobs: dict[int, Tensor] = {}
    ends = np.cumsum([len(own_places) for own_places in places.values()])
    for (number, own_places), end in zip(places.items(), ends, strict=True):
        logprobs_T = np.full(len(sequences[number].ids), math.nan, np.float32)
        logprobs_T[own_places] = logprobs_M[end - len(own_places) : end]
        rank_logprobs[number] = torch.from_numpy(logprobs_T)
    by_number = {
        number: logprobs_T
        for share in world.data.all_gather(rank_logprobs)
        for number, logprobs_T in share.items()
    }
    return [
        by_number[number] if number in by_number else torch.full((len(sequence.ids),), math.nan)
        for number, sequence in enumerate(sequences)
    ]
