"""Disk space of a run's checkpoints: the newest have the trainer's state, older ones and the best do not."""

from __future__ import annotations

from dataclasses import dataclass

from foresail.recipe.tables.parts import Checkpoints


@dataclass(frozen=True, kw_only=True)
class CheckpointSize:
    """Bytes of one checkpoint: the weights, and what only a resume needs: optimiser, critic, exact weights."""

    weights: int
    state: int

    @property
    def whole(self) -> int:
        return self.weights + self.state


def peak_bytes(size: CheckpointSize, settings: Checkpoints, steps: int, *, keeps_best: bool = False) -> int:
    """Bytes while the last checkpoint is written: older ones are removed only when it is whole.

    peak_bytes(CheckpointSize(weights=1, state=10), Checkpoints(keep=5, resumable=2), steps=20) -> 3 * 11 + 3 * 1
    """
    by_steps = settings.every is not None and settings.minutes is None and not keeps_best
    written = -(-steps // (settings.every or 1)) if by_steps else steps
    older = min(settings.keep, written - 1)
    resumable = min(settings.resumable, older)
    best = keeps_best and written - 1 > settings.keep
    return (resumable + 1) * size.whole + (older - resumable + best) * size.weights
