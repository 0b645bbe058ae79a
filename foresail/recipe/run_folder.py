"""Where a run will write, looked at before it starts: nothing is created here."""

from __future__ import annotations

import os
from pathlib import Path

from foresail.recipe.keys import leaves
from foresail.recipe.load import RecipeError, load_recipe
from foresail.recipe.machine import nearest_existing
from foresail.recipe.stages import Recipe


def run_folder(recipe: Recipe) -> Path:
    return Path(recipe.run.root) / recipe.run.name


def check_folder(recipe: Recipe) -> str | None:
    """Why the run cannot be written there, with the mend; None if it can."""
    folder = run_folder(recipe)
    there = nearest_existing(folder)
    if not there.is_dir():
        return (
            f"{folder} cannot be made, because {there} is a file; set run.root or run.name to another folder"
        )
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there} cannot be written to; set run.root to a folder of yours"
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
            f"run.name, or go on with that run: foresail resume {folder}"
        )
    return None


def holds_same_recipe(recipe: Recipe) -> bool:
    return (run_folder(recipe) / "recipe.toml").is_file() and check_folder(recipe) is None


def differing_keys(one: Recipe, other: Recipe, most: int = 4) -> list[str]:
    """differing_keys(rl, rl with another rate) -> ["optimizer.lr"]; "…" stands for those beyond `most`.

    Where the run lies does not count: a moved folder holds the same run.
    """
    ours, theirs = dict(leaves(one.model_dump())), dict(leaves(other.model_dump()))
    places = ("run.root", "run.name")
    unlike = [key for key in ours | theirs if key not in places and ours.get(key) != theirs.get(key)]
    return unlike[:most] + ["…"] * (len(unlike) > most)
