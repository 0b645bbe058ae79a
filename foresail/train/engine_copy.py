"""The whole weights on rank 0, for its engines, where they cannot read the trained ones.

Those are shards on many ranks, or change while engines work (`rollout.staleness`). Filled tensor by tensor between
rollouts: no rank holds more than that copy and one weight. Else there is none: engines read what is trained.
"""

from __future__ import annotations

from typing import Any

import torch

from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model
from foresail.model.lora import attach
from foresail.model.shards import gather_whole
from foresail.train.trainer import Trainer


def engine_model(trainer: Trainer[Any]) -> Decoder:
    """What the engines of this rank read."""
    return trainer.policy.model if trainer.copy is None else trainer.copy


def open_copy(trainer: Trainer[Any]) -> None:
    """Every rank calls it, as all below."""
    policy, recipe = trainer.policy.model, trainer.recipe
    if not needs_copy(trainer):
        return
    if trainer.world.rank == 0:
        trainer.copy = empty_model(policy.shape, dtype=policy.dtype, device=trainer.device)
        if recipe.lora is not None:
            attach(trainer.copy, recipe.lora, seed=recipe.run.seed)
    refresh_copy(trainer, trainer.progress.step)


def needs_copy(trainer: Trainer[Any]) -> bool:
    return trainer.world.mesh is not None or trainer.recipe.rollout.staleness > 0


@torch.no_grad()
def refresh_copy(trainer: Trainer[Any], version: int) -> None:
    """Unless it holds these weights already."""
    if not needs_copy(trainer) or trainer.copy_version == version:
        return
    for name, weight in trainer.policy.model.named_parameters():
        whole = gather_whole(weight, to=0)
        if trainer.copy is not None and whole is not None:
            trainer.copy.get_parameter(name).copy_(whole)
    trainer.copy_version = version
