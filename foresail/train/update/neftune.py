"""NEFTune: uniform noise on embeddings while a model is fine-tuned, of alpha / sqrt(length x width) at the most.

Noise is a pure function of (seed, step, the sequence's own ids, position, coordinate): it does not depend on
packing, micro-batches, ranks or a resume.

Legend: T tokens, S sequences, D hidden size.
"""

from __future__ import annotations

import torch
from torch import Tensor

from foresail.engine.noise import GOLDEN, MIX_1, noise_key, uniforms
from foresail.model.decoder import Decoder
from foresail.records import PackedBatch
from foresail.train.update.step import BatchLoss, LossOfBatch


def noisy_loss(
    model: Decoder, batch: PackedBatch, *, loss: LossOfBatch, alpha: float, seed: int, step: int
) -> BatchLoss:
    """The loss of a micro-batch whose embeddings have noise on them."""
    noise_TD = embedding_noise(batch, model.shape.hidden_size, alpha=alpha, seed=seed, step=step)
    hook = model.embed.register_forward_hook(lambda _, __, embedded_TD: embedded_TD.float() + noise_TD)
    try:
        return loss(model, batch)
    finally:
        hook.remove()


def embedding_noise(batch: PackedBatch, width: int, *, alpha: float, seed: int, step: int) -> Tensor:
    assert batch.parents_S is None and batch.slice is None, "every sequence is whole"
    ids_T, positions_T = batch.ids_T, batch.positions_T
    lengths_S = batch.starts_S1.diff().to(ids_T.device)
    sequence_T = torch.repeat_interleave(torch.arange(len(lengths_S), device=ids_T.device), lengths_S)
    # whole numbers, which wrap around: sums do not depend on their order
    mixed_T = (ids_T + 1) * (2 * positions_T + 1) * MIX_1
    keys_S = torch.zeros_like(lengths_S).index_add_(0, sequence_T, mixed_T) + noise_key(
        seed, step, "neftune", 0
    )
    keys_T = keys_S[sequence_T] + positions_T * (width + 1) * GOLDEN  # every position has numbers of its own
    uniform_TD = uniforms(keys_T[:, None], torch.arange(width, device=ids_T.device)[None])
    largest_T = alpha / (lengths_S[sequence_T] * width).sqrt()
    return (2 * uniform_TD - 1).float() * largest_T[:, None]
