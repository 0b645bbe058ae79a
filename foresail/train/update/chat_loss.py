"""The loss on conversations that are kept from training, by source, while the model learns from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from foresail.recipe.stages.sft import Sft
from foresail.records import TrainSequence
from foresail.train.trainer import Trainer
from foresail.train.update.split import pack_share
from foresail.train.update.step import token_logprobs


@torch.no_grad()
def chat_loss(trainer: Trainer[Sft], held_out: Mapping[str, Sequence[TrainSequence]]) -> dict[str, float]:
    """{"val/loss/maths": 0.71}: the mean of all tokens with a loss; ranks compute a share each."""
    found, data = {}, trainer.world.data
    for name, sequences in held_out.items():
        total, count = torch.zeros((), dtype=torch.float64, device=trainer.device), 0
        for batch in pack_share(
            sequences,
            [1.0] * len(sequences),
            trainer.world,
            max_tokens=trainer.recipe.micro_batch_tokens,
            device=trainer.device,
        ):
            logprobs_M, _ = token_logprobs(trainer.policy.model, batch)
            total -= logprobs_M.double().sum()
            count += len(logprobs_M)
        found[f"val/loss/{name}"] = float(data.sum(total)) / max(1, data.sum(count))
    return found
