"""Chained stages: each starts from the checkpoint of the one before, and finished ones are skipped.

    tuned = train_stage(sft_recipe)
    train_stage(rl_recipe(tuned.checkpoint))

Run again after a stop, a script of such lines resumes.
"""

from __future__ import annotations

from typing import Any

from foresail.recipe.reading.limits import explaining_limits
from foresail.recipe.reading.run_folder import check_folder
from foresail.recipe.stages.stage import Stage
from foresail.recipe.stages.table import stage_function
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.resume import finished_checkpoint
from foresail.train.session import Outcome


class Interrupted(Exception):
    """A stage was asked to stop: Interrupted("sft"). The same command resumes it."""

    def __init__(self, stage: str) -> None:
        super().__init__(stage)
        self.stage = stage

    def __str__(self) -> str:
        return f"stopped during {self.stage}; the same command goes on"


def train_stage(recipe: Stage, **options: Any) -> Outcome:
    """Train from the start or from the last checkpoint; a finished stage only returns its outcome.

    A folder with another recipe (another seed, say) is refused. `options` are the stage function's own.
    """
    if (refusal := check_folder(recipe)) is not None:
        raise ValueError(refusal)
    run = RunDirectory(recipe.run.folder)
    if run.exists() and (checkpoint := finished_checkpoint(run, recipe)) is not None:
        return Outcome(run=run.path, checkpoint=checkpoint, finished=True)
    with explaining_limits(recipe):
        outcome: Outcome = stage_function(recipe.stage)(recipe, resume=run.exists(), **options)
    if not outcome.finished:
        raise Interrupted(recipe.run.name)
    return outcome
