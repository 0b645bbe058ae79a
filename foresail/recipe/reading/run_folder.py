"""Checks of a run's folder before it starts; nothing is created here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from foresail.recipe.estimates.machine import nearest_existing
from foresail.recipe.keys import leaves
from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.reward_function import given_by_program, name_of
from foresail.recipe.stages.stage import Stage
from foresail.recipe.tables.reward import Reward

MAX_KEYS = 4  # that a message names


def check_new_run(recipe: Stage) -> str | None:
    """Why a new run cannot start there, with what to do; None if it can.

    A run that failed before its first step has nothing to lose: its folder may be used again.
    """
    folder = recipe.run.folder
    if not has_begun(folder):
        return check_place(folder)
    if (refusal := check_folder(recipe)) is not None:
        return refusal
    return (
        f"{folder} already holds this run; go on with it: {how_to_go_on(recipe)}, or choose another run.name"
    )


def how_to_go_on(recipe: Stage) -> str:
    """The command; where a program gave functions, the call that gives them again."""
    reward, folder = getattr(recipe, "reward", None), recipe.run.folder
    functions = reward.functions.values() if isinstance(reward, Reward) else ()
    if any(given_by_program(function) for function in functions):
        return f'foresail.resume("{folder}", reward=…)'
    return f"foresail resume {folder}"


def check_folder(recipe: Stage) -> str | None:
    """Why this recipe can neither start nor resume there, with what to do; None if it can."""
    folder = recipe.run.folder
    if (refusal := check_place(folder)) is not None:
        return refusal
    if not (folder / "recipe.toml").is_file():
        stray = (folder / "metrics.jsonl").is_file()
        return f"{folder} holds a run without its recipe; choose another run.name" if stray else None
    try:
        recorded = load_recipe(folder / "recipe.toml")
    except RecipeError as error:
        return f"{folder} holds a run whose recipe cannot be read; choose another run.name ({error})"
    if different := differing_keys(recipe, recorded):
        return (
            f"{folder} holds a run of another recipe (other {', '.join(different)}); choose another "
            f"run.name, or go on with that run: {how_to_go_on(recorded)}"
        )
    return None


def check_place(folder: Path) -> str | None:
    """Why nothing can be written there, with what to do."""
    there = nearest_existing(folder)
    if not there.is_dir():
        return (
            f"{folder} cannot be made, because {there} is a file; set run.root or run.name to another folder"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there} cannot be written to; set run.root to a folder of yours"
    return None


def has_begun(folder: Path) -> bool:
    """Whether a run has left a checkpoint or a step there: the same rule as `RunDirectory.has_begun`."""
    if any(path.name.removeprefix("step_").isdigit() for path in (folder / "checkpoints").glob("step_*")):
        return True
    metrics = folder / "metrics.jsonl"
    if not metrics.is_file():
        return False
    with metrics.open("rb") as lines:
        return any(line.endswith(b"\n") and not is_before_steps(line) for line in lines)


def is_before_steps(line: bytes) -> bool:
    """Whether a line is the record of step 0, written before the first step."""
    try:
        return json.loads(line)["step"] == 0
    except (ValueError, TypeError, KeyError):
        return False


def written(recipe: Stage) -> dict[str, Any]:
    """The recipe's values as a user writes them: a lone source is a table."""
    return {
        name: entry[0]
        if isinstance(entry, tuple) and len(entry) == 1 and isinstance(entry[0], dict)
        else entry
        for name, entry in recipe.model_dump().items()
    }


def by_name(value: Any) -> Any:
    """Functions that a program gave as their names, which is what recipe.toml has of them."""
    if isinstance(value, dict):
        return {key: by_name(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [by_name(entry) for entry in value]
    return name_of(value) if callable(value) else value


def differing_keys(one: Stage, other: Stage) -> list[str]:
    """differing_keys(rl, rl with another rate) -> ["optimizer.lr"]; "…" stands for those beyond a few.

    Where the run lies does not count: a moved folder holds the same run.
    """
    ours, theirs = ({key: by_name(value) for key, value in leaves(written(each))} for each in (one, other))
    places = ("run.root", "run.name")
    unlike = [key for key in ours | theirs if key not in places and ours.get(key) != theirs.get(key)]
    return unlike[:MAX_KEYS] + ["…"] * (len(unlike) > MAX_KEYS)
