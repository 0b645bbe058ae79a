"""The recipe recorded in a checkpoint: a resume with other keys is refused, and the message names them.

    check_file(run, checkpoint)             # recipe.toml, as it lies in the run's folder
    check_recipe(recipe, run, checkpoint)   # the recipe that is about to be used

Every checkpoint has a copy of the recipe (`trainer/recipe.toml`, under its checksums), and recipe.toml has its
own checksum in its first line. Some keys do not change the steps that were done: `foresail resume RUN KEY=VALUE`
sets them. Runs from before there were copies and checksums go on as they are; `is_unsealed` tells them.
`check_whole` has checked before that the copy is whole.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from foresail.recipe.keys import leaves
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import RecipeError, build_recipe, read_toml
from foresail.recipe.reading.run_folder import written
from foresail.recipe.reading.seal import read_seal
from foresail.recipe.reward_function import fingerprint_of_named, given_by_program
from foresail.recipe.stages.stage import Stage
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.learner import TRAINER

NAME = "recipe.toml"
# What does not change the steps that were done; those of the second line change no more than rounding.
CHANGEABLE = (
    *("steps", "eval_every", "show_samples", "run.wandb", "run.device", "model.dtype"),
    *("micro_batch_tokens", "recompute", "engine.max_running", "engine.kv_tokens", "engine.prefill_tokens"),
)
CHANGEABLE_TABLES = ("checkpoints", "cluster")
PLACES = ("run.root", "run.name")  # a run that was moved is the same run
LONGEST_VALUE = 40  # characters that a message shows
MAX_KEYS = 6  # that a message names
UNSET = object()


def may_change(key: str) -> bool:
    return key in CHANGEABLE or key.partition(".")[0] in CHANGEABLE_TABLES


def changeable_keys() -> str:
    return ", ".join([*CHANGEABLE, *(f"{table}.…" for table in CHANGEABLE_TABLES)])


def copy_path(checkpoint: Path) -> Path:
    return checkpoint / TRAINER / NAME


def write_copy(checkpoint: Path, recipe: Stage) -> None:
    copy_path(checkpoint).write_text(to_toml(recipe), encoding="utf-8")


def next_number(folder: Path) -> int:
    """The number of the run's current recipe: earlier ones are recipe.1.toml, recipe.2.toml, …"""
    numbers = (path.name.split(".")[1] for path in folder.glob("recipe.*.toml"))
    return max((int(number) for number in numbers if number.isdecimal()), default=0) + 1


# Comparing.


def check_file(
    run: RunDirectory,
    checkpoint: Path | None,
    *,
    setting: Collection[str] = (),
    changed_reward: bool = False,
) -> None:
    """Refuse a recipe.toml that was cut, damaged or changed by hand. Keys that are being set anew may differ."""
    text = read_text(run, checkpoint)
    state, number = read_seal(text)
    if state == "whole" and number < next_number(run.path):  # one from before `foresail resume` set some keys
        state = "broken"
    if checkpoint is None or not copy_path(checkpoint).is_file():
        if state == "broken":
            raise RecipeError(
                f"{run.recipe_path} was changed or damaged since the run began: the checksum in its first line is "
                f"another. Undo that, or start a new run with it: foresail STAGE {run.recipe_path} run.name=…"
            )
        return
    try:
        now = read_toml(run.recipe_path)
    except RecipeError as error:
        raise RecipeError(f"{error}; to go on, copy {copy_path(checkpoint)} there") from None
    changed = different_keys(now, read_toml(copy_path(checkpoint)))
    if (
        state == "whole"
    ):  # what differs all the same was set with `foresail resume`, if that may be set at all
        changed = refused(changed, checkpoint, changed_reward=changed_reward)
    changed = without_same_functions(changed, checkpoint)
    changed = {key: pair for key, pair in changed.items() if not is_among(key, setting)}
    if changed:
        raise RecipeError(describe_change(str(run.recipe_path), changed, run, checkpoint))


def check_recipe(recipe: Stage, run: RunDirectory, checkpoint: Path, *, changed_reward: bool = False) -> None:
    """Refuse to go on with another recipe than the checkpoint's, but for keys that may change."""
    if not copy_path(checkpoint).is_file():
        return
    changed = refused(changes_since(recipe, checkpoint), checkpoint, changed_reward=changed_reward)
    if changed:
        raise RecipeError(describe_change("the recipe", changed, run, checkpoint))


def changes_since(recipe: Stage, checkpoint: Path) -> dict[str, tuple[Any, Any]]:
    """{"steps": (200, 100)}: now, and when the checkpoint was written."""
    return different_keys(tomllib.loads(to_toml(recipe)), read_toml(copy_path(checkpoint)))


def refused(
    changed: Mapping[str, tuple[Any, Any]], checkpoint: Path | None, *, changed_reward: bool
) -> dict[str, tuple[Any, Any]]:
    """The changed keys that a resume does not allow; rewards are among them unless `changed_reward`."""
    unlike = changed if checkpoint is None else without_same_functions(changed, checkpoint)
    accepted = ("reward",) if changed_reward else ()
    return {key: pair for key, pair in unlike.items() if not may_change(key) and not is_among(key, accepted)}


def without_same_functions(
    changed: Mapping[str, tuple[Any, Any]], checkpoint: Path
) -> dict[str, tuple[Any, Any]]:
    """Without graders whose function came from a program when the run began, and comes from a file now."""
    known = read_progress(checkpoint).rewards
    return {key: pair for key, pair in changed.items() if not same_functions(*pair, known)}


def same_functions(now: Any, before: Any, checksums: Mapping[str, str]) -> bool:
    """Whether values, lists or tables differ only in where the same functions are defined."""
    if isinstance(now, dict) and isinstance(before, dict):
        return now.keys() == before.keys() and all(
            same_functions(now[key], before[key], checksums) for key in now
        )
    if isinstance(now, list | tuple) and isinstance(before, list | tuple):
        pairs = zip(now, before, strict=False)
        return len(now) == len(before) and all(same_functions(*pair, checksums) for pair in pairs)
    if isinstance(now, str) and isinstance(before, str) and given_by_program(before):
        one = fingerprint_of_named(now)
        return now == before or (one is not None and one in checksums.get(before, ""))
    return bool(now == before)


def is_taken_up(recipe: Stage, checkpoint: Path, step: int) -> bool:
    """Whether a finished run goes on because its recipe now asks for more."""
    if copy_path(checkpoint).is_file():
        return bool(changes_since(recipe, checkpoint))
    return recipe.steps > step  # one of an earlier version


def is_unsealed(checkpoint: Path) -> bool:
    """Whether an earlier version wrote it, without checksums of the recipe and the progress."""
    return not copy_path(checkpoint).is_file()


def read_text(run: RunDirectory, checkpoint: Path | None) -> str:
    try:
        return run.recipe_path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        there = checkpoint is not None and copy_path(checkpoint).is_file()
        remedy = f"; copy {copy_path(checkpoint)} there" if checkpoint is not None and there else ""
        words = error.strerror if isinstance(error, OSError) else "it is not text"
        raise RecipeError(f"{run.recipe_path} cannot be read: {words}{remedy}") from None


def different_keys(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The keys in which two TOML recipes differ; the run's own folder does not count."""
    ours, theirs = values_of(one), values_of(other)
    if (
        ours is None or theirs is None
    ):  # a script's own reward function, say, which has no file to be read from
        ours, theirs = dict(leaves(one)), dict(leaves(other))
    return {
        key: (ours.get(key, UNSET), theirs.get(key, UNSET))
        for key in ours | theirs
        if key not in PLACES and ours.get(key, UNSET) != theirs.get(key, UNSET)
    }


def values_of(tables: dict[str, Any]) -> dict[str, Any] | None:
    """All values, defaults included; None where the tables make no valid recipe."""
    try:
        return dict(leaves(written(build_recipe(tables))))
    except RecipeError:
        return None


def is_among(key: str, setting: Collection[str]) -> bool:
    return any(key == entry or key.startswith(f"{entry}.") for entry in setting)


# Messages.


def describe_change(
    what: str, changed: Mapping[str, tuple[Any, Any]], run: RunDirectory, checkpoint: Path
) -> str:
    changes = [describe_key(key, *pair) for key, pair in list(changed.items())[:MAX_KEYS]]
    changes += [f"and {len(changed) - MAX_KEYS} more"] * (len(changed) > MAX_KEYS)
    unlike = f"{what} is not what {run.path} was trained with: {'; '.join(changes)}"
    if all(is_among(key, ("reward",)) for key in changed):
        return f"{unlike}. {accept_reward(run)}"
    return (
        f"{unlike}. To go on as it was, copy {copy_path(checkpoint)} to {run.recipe_path}. steps and a few other "
        f"keys may change, by foresail resume {run.path} KEY=VALUE; for all else start a new run: "
        f"model.path={checkpoint}"
    )


def accept_reward(run: RunDirectory) -> str:
    return (
        "Pass the reward that the run began with, or go on with this one: "
        f"foresail resume {run.path} --changed-reward …, in Python changed_reward=True"
    )


def describe_key(key: str, now: Any, before: Any) -> str:
    """describe_key("optimizer.lr", 0.1, 0.001) -> "optimizer.lr is 0.1, was 0.001"; tables by their name alone."""
    now, before = ("unset" if value is UNSET or value is None else repr(value) for value in (now, before))
    return f"{key} is {now}, was {before}" if max(len(now), len(before)) <= LONGEST_VALUE else f"other {key}"
