"""Every shipped recipe passes the check once what the docs name is there: models in small, data by `data get`."""

from __future__ import annotations

from pathlib import Path

from foresail.recipe.load import load_recipe

ROOT = Path(__file__).parents[2]
ALL = sorted([*ROOT.glob("recipes/*.toml"), *ROOT.glob("recipes/flagship/*.toml")])
FILES = [file for file in ALL if load_recipe(file).stage != "pretrain"]  # see test_pretrain_recipes.py
