"""One optimiser update over packed micro-batches, the same for every stage.

A loss is a sum over tokens whose weights already hold the normaliser of the whole update, so how the
sequences are split into micro-batches changes nothing but rounding.

Legend: M tokens with a loss, V vocabulary.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.records import PackedBatch, RunStopped
from foresail.train.optimizer import MasterAdamW

Loss = Callable[[Tensor, PackedBatch], tuple[Tensor, dict[str, Tensor]]]


class NonFiniteLoss(RunStopped):
    """The loss or its gradient is NaN or infinite; the weights were not touched."""


def token_logprobs(model: Decoder, batch: PackedBatch, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """Log-probability of every token with a loss, and the entropy (no gradient) where it was drawn."""
    hidden_TD = model(batch.ids_T, batch.positions_T, PackedAttention(batch.starts_S1))
    logits_MV = model.logits(hidden_TD[batch.targets_M - 1]).float()
    logprobs_MV = torch.log_softmax(logits_MV / temperature if temperature != 1.0 else logits_MV, dim=-1)
    with torch.no_grad():
        entropy_M = -(logprobs_MV.exp() * logprobs_MV).sum(-1)
    return logprobs_MV.gather(1, batch.ids_T[batch.targets_M][:, None]).squeeze(1), entropy_M


def train_step(
    model: Decoder,
    optimizer: MasterAdamW,
    batches: Sequence[PackedBatch],
    loss: Loss,
    *,
    learning_rate: float,
    temperature: float = 1.0,
) -> dict[str, float]:
    """Sum the gradients of all micro-batches, clip, update. Metrics are means over the update's tokens."""
    sums: dict[str, float] = defaultdict(float)
    total = 0.0
    for batch in batches:
        logprobs_M, entropy_M = token_logprobs(model, batch, temperature)
        value, terms = loss(logprobs_M, batch)
        if not torch.isfinite(value):
            optimizer.forget()
            raise NonFiniteLoss(describe(batch, f"loss is {value.item()}"))
        value.backward()
        optimizer.collect()
        total += value.item()
        sums["actor/entropy"] += entropy_M.sum().item()
        for name, term in terms.items():
            sums[name] += term.item()
    norm = optimizer.clip()
    if not math.isfinite(norm):
        culprit = find_culprit(model, optimizer, batches, loss, temperature)
        raise NonFiniteLoss(describe(culprit, f"gradient norm is {norm}"))
    optimizer.update(learning_rate)
    num_tokens = sum(batch.targets_M.numel() for batch in batches)
    means = {name: value / num_tokens for name, value in sums.items()}
    return {"actor/loss": total, "actor/grad_norm": norm, **means}


def find_culprit(
    model: Decoder, optimizer: MasterAdamW, batches: Sequence[PackedBatch], loss: Loss, temperature: float
) -> PackedBatch:
    """The first micro-batch whose gradient alone is not finite: the sum does not tell, so each is redone."""
    for batch in batches:
        optimizer.forget()
        loss(token_logprobs(model, batch, temperature)[0], batch)[0].backward()
        optimizer.collect()
        if not math.isfinite(optimizer.clip()):
            break
    optimizer.forget()
    return batch


def describe(batch: PackedBatch, what: str) -> str:
    names = ", ".join(batch.names[:4]) + (f" and {len(batch.names) - 4} more" if len(batch.names) > 4 else "")
    return (
        f"{what} in the micro-batch of {names or 'unnamed sequences'} ({batch.ids_T.numel()} tokens); "
        "the weights were not touched, and the last checkpoint is whole. Lower optimizer.lr, or look at these "
        "sequences"
    )
