"""Foresail's side of the part dpo of `vs_trl.py`: FOLDER/recipe.toml in, lines of JSON out. `foresail dpo`, timed.

python ours_dpo.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from beside_trl.our_reports import report_steps, say
from foresail.recipe.dpo import Dpo
from foresail.recipe.load import load_recipe
from foresail.train.dpo import run_dpo


def main() -> None:
    recipe = load_recipe(Path(sys.argv[1]) / "recipe.toml")
    assert isinstance(recipe, Dpo)
    say(versions={"torch": torch.__version__})
    report_steps()
    run_dpo(recipe)


if __name__ == "__main__":
    main()
