"""Going on with a run: as it was, from an older checkpoint, or longer than its recipe said.

    extend(run, ["steps=200"])   # foresail resume RUN steps=200
    go_back(run, 12)             # foresail resume RUN --from-step 12

Both only prepare the run's folder; going on itself is the stage's `resume`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from foresail.recipe.dump import to_toml
from foresail.recipe.keys import leaves
from foresail.recipe.load import RecipeError, load_recipe
from foresail.recipe.stage import Stage
from foresail.runlog.atomic import ASIDE, explained, write_text
from foresail.runlog.directory import RunDirectory
from foresail.runlog.lock import FolderInUse, lock_folder
from foresail.train.checkpoint import (
    check_whole,
    latest_checkpoint,
    name_best,
    read_progress,
    write_progress,
)

# What does not change the steps that were done.
CHANGEABLE = ("steps", "eval_every", "show_samples", "run.wandb")
CHANGEABLE_TABLES = ("checkpoints", "cluster")
SET_ASIDE = "left_"  # before the names of checkpoints that the run went back from


def finished_checkpoint(run: RunDirectory) -> Path | None:
    """Where a run ended; None while there is more to do."""
    newest = latest_checkpoint(run)
    if newest is None or not read_progress(newest).finished:
        return None
    # killed right after its last save, it may have left what was about to be removed
    if any(run.checkpoints_path.glob(f"{ASIDE}*")):
        with suppress(FolderInUse), lock_folder(run.path):
            run.clean()
    return newest


def extend(run: RunDirectory, overrides: Sequence[str]) -> Stage:
    """Change the run's recipe, keep the one before as recipe.1.toml, and take up a run that was finished.

    Learning rates that fall towards the end follow the new number of steps from here on.
    """
    before, after = load_recipe(run.recipe_path), load_recipe(run.recipe_path, overrides)
    changed = different_keys(before, after)
    if refused := [key for key in changed if not may_change(key)]:
        tables = [f"{table}.…" for table in CHANGEABLE_TABLES]
        raise RecipeError(
            f"{', '.join(refused)} cannot change in the middle of {run.path}; {', '.join([*CHANGEABLE, *tables])} "
            f"can. For all else start a new run from its checkpoint: model.path={latest_checkpoint(run)}"
        )
    newest = latest_checkpoint(run)
    progress = None if newest is None else read_progress(newest)
    if progress is not None and after.steps <= progress.step and (progress.finished or "steps" in changed):
        raise RecipeError(
            f"{run.path} has done {progress.step} steps; set steps above that, like steps={2 * progress.step}"
        )
    with lock_folder(run.path):
        if changed:
            write_text(run.path / f"recipe.{next_number(run.path)}.toml", run.recipe_path.read_text("utf-8"))
            write_text(run.recipe_path, to_toml(after))
        if newest is not None and progress is not None and progress.finished:
            waiting = None if progress.best is None else replace(progress.best, waiting=0)
            with explained(newest):
                write_progress(newest, replace(progress, finished=False, best=waiting))
    return after


def may_change(key: str) -> bool:
    return key in CHANGEABLE or key.partition(".")[0] in CHANGEABLE_TABLES


def different_keys(one: Stage, other: Stage) -> list[str]:
    ours, theirs = dict(leaves(one.model_dump())), dict(leaves(other.model_dump()))
    return [key for key in ours | theirs if ours.get(key) != theirs.get(key)]


def next_number(folder: Path) -> int:
    numbers = (path.name.split(".")[1] for path in folder.glob("recipe.*.toml"))
    return max((int(number) for number in numbers if number.isdecimal()), default=0) + 1


def go_back(run: RunDirectory, step: int) -> list[Path]:
    """Make a step the newest checkpoint: later ones are set aside under other names, which are returned."""
    steps = run.checkpoint_steps()
    if step not in steps:
        there = ", ".join(map(str, steps)) or "none"
        raise ValueError(f"{run.path} has no checkpoint of step {step}; steps there: {there}")
    check_whole(run, run.checkpoint_path(step))
    moved = []
    with lock_folder(run.path), explained(run.checkpoints_path):
        for later in reversed([later for later in steps if later > step]):
            path = run.checkpoint_path(later)
            moved.append(free_name(path.with_name(f"{SET_ASIDE}{path.name}")))
            os.replace(path, moved[-1])
        best = read_progress(run.checkpoint_path(step)).best
        name_best(run, None if best is None else best.step)
    return moved


def free_name(path: Path) -> Path:
    """left_step_12, or left_step_12-2, … where that is taken."""
    names = [path, *(path.with_name(f"{path.name}-{number}") for number in range(2, 1000))]
    return next(name for name in names if not name.exists())
