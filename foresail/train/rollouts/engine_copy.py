"""A copy of the weights for engines, where they cannot read the trained ones.

The trained weights may be sharded over ranks, or change while engines work (`rollout.staleness`): then rank 0 has
a copy, filled tensor by tensor between rollouts. Engines with their own weights that take turns with the trainer
need no copy: each tensor is sent as it is gathered, and a rank holds only its shards, one layer and the buckets
under way. Otherwise engines read, or are sent, the trained weights themselves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from foresail.model.decoder import Decoder
from foresail.model.hf import empty_model
from foresail.model.lora import attach
from foresail.model.shards import gather_whole
from foresail.recipe.stages.rollout_stage import Sampled
from foresail.recipe.tables.cluster import have_copies
from foresail.train.trainer import Trainer

Named = Iterable[tuple[str, Tensor]]
Read = Callable[[Decoder], Named]  # the weights of a model, one after the other; all ranks iterate


def engine_model(trainer: Trainer[Any]) -> Decoder:
    """What the engines of this rank read, or are built like."""
    return trainer.policy.model if trainer.copy is None else trainer.copy


def is_streamed(trainer: Trainer[Sampled]) -> bool:
    """Whether weights go from the shards to the engines without a copy here.

    With staleness they do not: an engine that replaces a lost one needs weights while the trainer changes them.
    """
    recipe = trainer.recipe
    in_turns = recipe.rollout.staleness == 0
    return trainer.world.mesh is not None and in_turns and have_copies(recipe.cluster, recipe.rollout)


def open_copy(trainer: Trainer[Sampled]) -> None:
    """Every rank calls it, like all functions below."""
    policy, recipe = trainer.policy.model, trainer.recipe
    if not needs_copy(trainer):
        return
    if trainer.world.rank == 0:
        trainer.copy = empty_model(policy.shape, dtype=policy.dtype, device=trainer.device)
        if recipe.lora is not None:
            attach(trainer.copy, recipe.lora, seed=recipe.run.seed)
    refresh_copy(trainer, trainer.progress.step)


def needs_copy(trainer: Trainer[Sampled]) -> bool:
    unsharded = trainer.world.mesh is None and trainer.recipe.rollout.staleness == 0
    return not unsharded and not is_streamed(trainer)


@torch.no_grad()
def refresh_copy(trainer: Trainer[Sampled], version: int) -> None:
    """Fill the copy, unless it holds this version already."""
    if not needs_copy(trainer) or trainer.copy_version == version:
        return
    for name, weight in trainer.policy.model.named_parameters():
        gathered = gather_whole(weight, to=0)
        if trainer.copy is not None and gathered is not None:
            trainer.copy.get_parameter(name).copy_(gathered)
    trainer.copy_version = version


def stream_weights(trainer: Trainer[Sampled], read: Read) -> Iterator[tuple[str, Tensor]]:
    """On rank 0, at any time: what `read` gives of the policy, for which the other ranks give their shards."""
    trainer.on_other_ranks(give_shards, read)
    weights = iter(read(trainer.policy.model))
    try:
        while (entry := next(weights, None)) is not None:
            yield entry
    finally:
        deque(weights, maxlen=0)  # the caller may have stopped early, but the other ranks gather all weights


def give_shards(trainer: Trainer[Sampled], read: Read) -> None:
    deque(read(trainer.policy.model), maxlen=0)


@torch.no_grad()
def first_layer(trainer: Trainer[Sampled]) -> Decoder:
    """The policy as if its first block were the only one: whole on rank 0; other ranks cannot use it."""
    policy, recipe = trainer.policy.model, trainer.recipe
    shape = policy.shape.model_copy(update={"num_layers": 1, "mtp": 0})
    part = empty_model(shape, dtype=policy.dtype, device=trainer.device)
    if recipe.lora is not None:
        attach(part, recipe.lora, seed=recipe.run.seed)
    for name, parameter in part.named_parameters():
        gathered = gather_whole(policy.get_parameter(name), to=0)
        if gathered is not None:
            parameter.copy_(gathered)
    return part
