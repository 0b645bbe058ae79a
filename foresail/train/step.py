"""One optimiser update over packed micro-batches, the same for every stage.

A loss is a sum over tokens whose weights already hold the normaliser of the whole update, so how the
sequences are split into micro-batches changes nothing but rounding.

Legend: T tokens, M those with a loss, D hidden size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from foresail.model.attention import PackedAttention
from foresail.model.decoder import Decoder
from foresail.model.likelihood import token_likelihood
from foresail.records import PackedBatch, RunStopped
from foresail.train.optimizer import AdamW

Loss = Callable[[Tensor, PackedBatch], tuple[Tensor, dict[str, Tensor]]]
Share = Callable[[PackedBatch], tuple[Tensor, dict[str, Tensor]]]  # a micro-batch's loss, and terms to log


class NonFiniteLoss(RunStopped):
    """The loss or its gradient is NaN or infinite; the weights were not touched."""


def token_logprobs(model: Decoder, batch: PackedBatch, temperature: float = 1.0) -> tuple[Tensor, Tensor]:
    """Log-probability of every token with a loss, and the entropy (no gradient) where it was drawn."""
    hidden_TD = model(batch.ids_T, batch.positions_T, PackedAttention(batch.starts_S1, batch.parents_S))
    ids_M = batch.ids_T[batch.targets_M]
    return token_likelihood(hidden_TD[batch.sources_M], model.head_weight, ids_M, temperature)


def train_step(
    model: Decoder,
    optimizer: AdamW,
    batches: Sequence[PackedBatch],
    loss: Loss,
    *,
    learning_rate: float,
    temperature: float = 1.0,
) -> dict[str, float]:
    """One update of the policy. Metrics are means over the update's tokens."""

    def share(batch: PackedBatch) -> tuple[Tensor, dict[str, Tensor]]:
        logprobs_M, entropy_M = token_logprobs(model, batch, temperature)
        value, sums = loss(logprobs_M, batch)
        return value, {"actor/entropy": entropy_M.sum(), **sums}

    descent = descend(optimizer, batches, share, learning_rate)
    return {"actor/loss": descent.loss, "actor/grad_norm": descent.norm, **descent.means}


@dataclass(frozen=True, kw_only=True)
class Descent:
    """What an update was: its loss, the gradient's norm before it was clipped, other terms per token."""

    loss: float
    norm: float
    means: dict[str, float]


def descend(optimizer: AdamW, batches: Sequence[PackedBatch], share: Share, learning_rate: float) -> Descent:
    """Sum the gradients of all micro-batches, clip, update.

    Nothing is read from the device until the end, so it is never waited for.
    """
    sums = accumulate(optimizer, batches, share)
    norm, scale = optimizer.clip(), optimizer.gradients.scale
    while scale is not None and not math.isfinite(norm) and scale.lower():
        optimizer.forget()
        sums = accumulate(optimizer, batches, share)
        norm = optimizer.clip()
    found = dict(zip(sums, torch.stack([term.float() for term in sums.values()]).tolist(), strict=True))
    loss = found.pop("loss")
    if not math.isfinite(norm) or not math.isfinite(loss):
        advice = "" if scale is None else ', or set model.dtype = "bfloat16", which holds larger numbers'
        raise NonFiniteLoss(describe(*find_culprit(optimizer, batches, share)) + advice)
    optimizer.update(learning_rate)
    num_tokens = sum(batch.targets_M.numel() for batch in batches)
    means = {name: value if is_extreme(name) else value / num_tokens for name, value in found.items()}
    return Descent(loss=loss, norm=norm, means=means)


def accumulate(optimizer: AdamW, batches: Sequence[PackedBatch], share: Share) -> dict[str, Tensor]:
    """The gradients of all micro-batches go to the optimiser; the sums of their terms, `loss` among them."""
    sums: dict[str, Tensor] = {}
    for batch in batches:
        value, terms = share(batch)
        optimizer.gradients.add(value)
        terms = {"loss": value.detach(), **terms}
        sums = {name: merge(name, sums[name], term) if name in sums else term for name, term in terms.items()}
    return sums


def merge(name: str, before: Tensor, term: Tensor) -> Tensor:
    """Terms of two micro-batches: sums add up, of extremes the greater stays."""
    return torch.maximum(before, term) if is_extreme(name) else before + term


def is_extreme(name: str) -> bool:
    return name.endswith("_max")


def find_culprit(optimizer: AdamW, batches: Sequence[PackedBatch], share: Share) -> tuple[PackedBatch, str]:
    """The first micro-batch that alone is not finite, and how: the sum does not tell, so each is redone."""
    for batch in batches:
        optimizer.forget()
        value, _ = share(batch)
        optimizer.gradients.add(value)
        norm = optimizer.clip()
        if not math.isfinite(value.item()):
            what = f"loss is {value.item()}"
            break
        if not math.isfinite(norm):
            what = f"gradient norm is {norm}"
            break
    else:
        what = "the sum of all gradients is not finite, though each is,"
    optimizer.forget()
    return batch, what


def describe(batch: PackedBatch, what: str) -> str:
    names = ", ".join(batch.names[:4]) + (f" and {len(batch.names) - 4} more" if len(batch.names) > 4 else "")
    return (
        f"{what} in the micro-batch of {names or 'unnamed sequences'} ({batch.ids_T.numel()} tokens); "
        "the weights were not touched, and the last checkpoint is whole. Lower optimizer.lr, or look at these "
        "sequences"
    )
