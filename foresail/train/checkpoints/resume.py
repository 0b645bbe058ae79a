"""Prepares a run's folder for a resume: with a changed recipe, or from an older checkpoint.

    extend(run, ["steps=200"])   # foresail resume RUN steps=200
    go_back(run, 12)             # foresail resume RUN --from-step 12

Both only prepare the folder; the stage then runs with `resume=True`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.reading.overrides import split_overrides
from foresail.recipe.reading.seal import read_seal, seal
from foresail.recipe.stages.stage import Stage
from foresail.runlog.atomic import ASIDE, explained, write_text
from foresail.runlog.directory import RunDirectory
from foresail.runlog.lock import FolderInUse, lock_folder
from foresail.train.checkpoints.checkpoint import (
    check_whole,
    latest_checkpoint,
    name_best,
    read_progress,
    tidy,
    tidying,
)
from foresail.train.checkpoints.recorded_recipe import (
    changeable_keys,
    check_file,
    copy_path,
    describe_change,
    different_keys,
    is_among,
    is_taken_up,
    next_number,
    refused,
)

SET_ASIDE = "left_"  # before the names of checkpoints that the run went back from


def read_recipe(run: RunDirectory) -> Stage:
    """The recipe of recipe.toml; where it cannot be read, the error names the copy to restore it from."""
    try:
        return load_recipe(run.recipe_path)
    except RecipeError as error:
        newest = latest_checkpoint(run)
        if newest is None or not copy_path(newest).is_file():
            raise
        raise RecipeError(f"{error}\nto go on, copy {copy_path(newest)} to {run.recipe_path}") from None


def finished_checkpoint(run: RunDirectory, recipe: Stage) -> Path | None:
    """The last checkpoint of a finished run; None while there is more to do."""
    newest = latest_checkpoint(run)
    if newest is None:
        return None
    try:
        progress = read_progress(newest)
    except ValueError:
        check_whole(run, newest)  # it names another checkpoint, if there is one to go on from
        raise
    if not progress.finished or is_taken_up(recipe, newest, progress.step):
        return None
    check_whole(run, newest)
    # killed right after its last save, it may have left what was about to be removed, or the best step unnamed
    if any(run.checkpoints_path.glob(f"{ASIDE}*")) or tidying(run, progress, recipe.checkpoints):
        with suppress(FolderInUse), lock_folder(run.path):
            run.clean()
            tidy(run, progress, recipe.checkpoints)
    return newest


def extend(
    run: RunDirectory,
    overrides: Sequence[str] = (),
    *,
    change: Callable[[Stage], Stage] = lambda recipe: recipe,
    changed_reward: bool = False,
) -> Stage:
    """Change the run's recipe, and keep the one before as recipe.1.toml. So a finished run can go on.

    Learning rates that fall towards the end follow the new number of steps from here on. `change` lays over what
    no override can say, such as functions; `changed_reward` accepts another reward.
    """
    newest = latest_checkpoint(run)
    if newest is not None:
        check_whole(run, newest)
    setting = split_overrides(overrides)[0]
    check_file(run, newest, setting=setting, changed_reward=changed_reward)
    before, after = load_recipe(run.recipe_path), change(load_recipe(run.recipe_path, overrides))
    changed = different_keys(tomllib.loads(to_toml(after)), tomllib.loads(to_toml(before)))
    if unlike := refused(changed, newest, changed_reward=changed_reward):
        if newest is not None and all(is_among(key, ("reward",)) for key in unlike):
            raise RecipeError(describe_change("the recipe", unlike, run, newest))
        raise RecipeError(
            f"{', '.join(unlike)} cannot change in the middle of {run.path}; {changeable_keys()} can. For all "
            f"else start a new run from its checkpoint: model.path={newest}"
        )
    progress = None if newest is None else read_progress(newest)
    too_few = progress is not None and after.steps <= progress.step
    if progress is not None and too_few and ("steps" in changed or (progress.finished and overrides)):
        raise RecipeError(
            f"{run.path} has done {progress.step} steps; set steps above that, like steps={2 * progress.step}"
        )
    text = run.recipe_path.read_text("utf-8")
    number = next_number(run.path)
    if changed or read_seal(text) != ("whole", number):
        with lock_folder(run.path):
            write_text(run.path / f"recipe.{number}.toml", text)
            write_text(run.recipe_path, seal(to_toml(after), number + 1))
    return after


def go_back(run: RunDirectory, step: int) -> list[Path]:
    """Make a step the newest checkpoint: later ones are set aside under other names, which are returned."""
    steps = run.checkpoint_steps()
    if step not in steps:
        available = ", ".join(map(str, steps)) or "none"
        raise ValueError(f"{run.path} has no checkpoint of step {step}; steps there: {available}")
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
