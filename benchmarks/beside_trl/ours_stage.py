"""Foresail's side of the parts dpo and reward of `vs_trl.py`: FOLDER/recipe.toml in, lines of JSON out.

    python ours_stage.py FOLDER

What `foresail dpo` and its kin do, timed; the run directory is made in FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from our_reports import report_steps, say

from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.table import stage_function


def main() -> None:
    folder = Path(sys.argv[1])
    recipe = load_recipe(folder / "recipe.toml", [f"run.root={folder}"])
    say(versions={"torch": torch.__version__})
    report_steps()
    stage_function(recipe.stage)(recipe)


if __name__ == "__main__":
    main()
