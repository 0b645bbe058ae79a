"""The learning rate as a pure function of the update's number."""

from __future__ import annotations

import math

from foresail.recipe.parts import Optimizer


def learning_rate(update: int, total_updates: int, settings: Optimizer) -> float:
    """Rate of the `update`-th update, counted from 1: linear warm-up, then the schedule's decay.

    With lr 1, warmup 2, linear, final_share 0 and 6 updates: 0.5, 1, 0.75, 0.5, 0.25, 0.
    """
    if update <= settings.warmup:
        return settings.lr * update / settings.warmup
    if settings.schedule == "constant":
        return settings.lr
    progress = (update - settings.warmup) / max(1, total_updates - settings.warmup)
    left = {"linear": 1.0 - progress, "cosine": 0.5 * (1.0 + math.cos(math.pi * progress))}[settings.schedule]
    return settings.lr * (settings.final_share + (1 - settings.final_share) * left)
