"""The optimiser updates of a step, in stages that sample: their cost and their learning rates.

metrics = work_metrics(trainer, updates)
for batches, rate in with_learning_rates(trainer, updates):
    results = train_step(trainer.policy, batches, loss, learning_rate=rate)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from foresail.recipe.stages.rollout_stage import Sampled
from foresail.records import PackedBatch
from foresail.train.auxiliary.expert_load import balance_experts
from foresail.train.optim.schedule import learning_rate
from foresail.train.trainer import Trainer
from foresail.train.update.flops import update_metrics

ROLLOUT_SHARE = 0.65  # of a step's time, roughly, as long as no step has ended; the update has the rest
Update = TypeVar("Update")  # its micro-batches, and what else belongs to it


def work_metrics(trainer: Trainer[Sampled], updates: Sequence[Sequence[PackedBatch]]) -> dict[str, float]:
    """FLOPs, balance and useful places of the updates; MTP layers are counted if they learn."""
    recipe, shape = trainer.recipe, trainer.policy.model.shape
    return update_metrics(
        updates,
        shape if recipe.mtp else shape.without_mtp(),
        micro_batch_tokens=recipe.micro_batch_tokens,
        frozen=recipe.lora is not None,
        world=trainer.world,
    )


def with_learning_rates(
    trainer: Trainer[Sampled], updates: Sequence[Update]
) -> Iterator[tuple[Update, float]]:
    """Each with its learning rate; losses of routers have the coefficients of that update."""
    recipe, total = trainer.recipe, trainer.recipe.num_updates
    trainer.display.begin("update", len(updates), span=(ROLLOUT_SHARE, 1.0))
    for number, update in enumerate(updates, start=trainer.progress.updates + 1):
        balance_experts(trainer.policy.model, recipe.router, number / total)
        yield update, learning_rate(number, total, recipe.optimizer)
        trainer.display.advance()
