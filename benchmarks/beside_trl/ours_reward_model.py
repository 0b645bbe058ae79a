"""Foresail's side of the part reward of `vs_trl.py`: FOLDER/recipe.toml in, lines of JSON out.

python ours_reward_model.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from beside_trl.our_reports import report_steps, say
from foresail.recipe.load import load_recipe
from foresail.recipe.reward_model import RewardModel
from foresail.train.reward_model import run_reward_model


def main() -> None:
    recipe = load_recipe(Path(sys.argv[1]) / "recipe.toml")
    assert isinstance(recipe, RewardModel)
    say(versions={"torch": torch.__version__})
    report_steps()
    run_reward_model(recipe)


if __name__ == "__main__":
    main()
