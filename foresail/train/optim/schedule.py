"""The learning rate as a pure function of the update's number, or of the tokens that were learned from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from foresail.recipe.stages.pretrain_stage import PretrainStage, Where, rate_of
from foresail.recipe.tables.parts import Optimizer


def learning_rate(update: int, total_updates: int, settings: Optimizer) -> float:
    """Rate of the `update`-th update, counted from 1: linear warm-up, then the schedule's decay.

    With lr 1, warmup 2, linear, final_share 0 and 6 updates: 0.5, 1, 0.75, 0.5, 0.25, 0.
    """
    if update <= settings.warmup:
        return settings.lr * update / settings.warmup
    if settings.schedule == "constant":
        return settings.lr
    progress = (update - settings.warmup) / max(1, total_updates - settings.warmup)
    remaining = {"linear": 1.0 - progress, "cosine": 0.5 * (1.0 + math.cos(math.pi * progress))}[
        settings.schedule
    ]
    return settings.lr * (settings.final_share + (1 - settings.final_share) * remaining)


# By tokens: pretraining.

FALLS: dict[str, Callable[[float], float]] = {
    "linear": lambda progress: 1.0 - progress,
    "cosine": lambda progress: 0.5 * (1.0 + math.cos(math.pi * progress)),
    "sqrt": lambda progress: 1.0 - math.sqrt(progress),
}


def stage_rate(stage: PretrainStage, done: int, *, lr: float, before: float) -> float:
    """The rate of an update that ends after `done` tokens of its stage.

    `before` is the rate at the end of the stage before, from which a warm-up rises, or falls. With lr 1, before 0,
    100 tokens, 20 of warm-up and a linear fall of 40: 0.5 after 10, 1 after 20 to 60, 0.5 after 80, 0 after 100.
    """
    if done < stage.warmup_tokens:
        return before + (lr - before) * done / stage.warmup_tokens
    if stage.decay == "constant":
        return lr
    fall = stage.decay_tokens or stage.tokens - stage.warmup_tokens
    progress = min(1.0, max(0.0, (done - (stage.tokens - fall)) / max(1, fall)))
    return stage.final_lr + (lr - stage.final_lr) * FALLS[stage.decay](progress)


def token_rate(stages: Sequence[PretrainStage], where: Where, after: int, lr: float) -> float:
    """The rate of an update that ends after `after` tokens of its stage; `lr` is for stages without their own."""
    before = 0.0
    for stage in stages[: where.stage]:
        before = stage_rate(stage, stage.tokens, lr=rate_of(stage, lr), before=before)
    stage = stages[where.stage]
    return stage_rate(stage, min(after, stage.tokens), lr=rate_of(stage, lr), before=before)
