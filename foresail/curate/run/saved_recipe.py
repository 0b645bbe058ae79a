"""The recipe of a curation, kept in its folder: who has the folder can ask it why.

    out/recipe.json     {"folder": "/home/ada/web", "limit": null, "source": […], "step": […], …}

`folder` is where paths of the recipe begin.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from dataclasses import replace
from pathlib import Path

from foresail.curate.recipe import CurationRecipe, build_curation
from foresail.data.jobs.plan import PLAN
from foresail.runlog.atomic import write_text

RECIPE = "recipe.json"


def save_recipe(recipe: CurationRecipe) -> None:
    table = {
        "folder": str(Path.cwd()),
        "limit": recipe.limit,
        **recipe.curation.model_dump(mode="json", exclude={"out"}),
        "step": [{"name": step.name, **step.keys} for step in recipe.steps],
    }
    write_text(recipe.out / RECIPE, json.dumps(table, indent=1, ensure_ascii=False) + "\n")


def is_curation(folder: Path) -> bool:
    return (folder / RECIPE).is_file() and (folder / PLAN).is_file()


@contextmanager
def open_curation(folder: Path) -> Iterator[CurationRecipe]:
    """The recipe of a curation's folder, in the folder where its paths begin, if that is still there."""
    table = json.loads((folder / RECIPE).read_text(encoding="utf-8"))
    out, begin, limit = folder.absolute(), Path(table.pop("folder")), table.pop("limit")
    with chdir(begin if begin.is_dir() else Path.cwd()):
        yield replace(build_curation({**table, "out": str(out)}, str(out / RECIPE)), limit=limit)
