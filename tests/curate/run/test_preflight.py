"""What is missing is said before the first document is read, and all at once."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from small_recipe import small_recipe, step

from foresail.curate.curation import curate
from foresail.curate.recipe import RecipeError, build_curation
from foresail.curate.run.preflight import preflight

PAPERS = ("compass-v2", "mimo")
RECIPES = [Path(__file__).parents[3] / f"recipes/curate/{name}.toml" for name in PAPERS]


def test_missing_files_of_steps_sinks_and_mixtures_are_one_error(tmp_path: Path) -> None:
    recipe = small_recipe(
        tmp_path,
        step(tmp_path, "short"),
        {"name": "classify", "model": "gone.npz"},
        {"name": "perplexity", "model": "gone-model"},
        {"name": "language", "keep": ["en", "klingon"]},
        sink=[{"kind": "tokens", "tokenizer": "gone-tokenizer"}],
        mixture=[{"name": "m", "corpora": [{"name": "x", "source": "gone-corpus"}]}],
    )
    with pytest.raises(RecipeError) as raised:
        curate(recipe)
    message = str(raised.value)
    assert "5 mistakes" in message
    for name in ("gone.npz", "gone-model", "klingon", "gone-tokenizer", "gone-corpus"):
        assert name in message
    assert not recipe.out.exists()


@pytest.mark.parametrize("file", RECIPES, ids=lambda file: file.stem)
def test_the_shipped_recipes_load_and_name_what_to_bring(file: Path) -> None:
    table: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    recipe = build_curation(table, str(file))
    with pytest.raises(RecipeError, match="train-classifier") as raised:
        preflight(recipe)
    assert "tokenizer" in str(raised.value)


def test_a_stopped_run_does_not_go_on_with_other_rules(tmp_path: Path) -> None:
    rules = tmp_path / "mine.toml"
    rules.write_text("[all.too_short]\nwords = {least = 3}\n")
    recipe = small_recipe(tmp_path, {"name": "heuristics", "rules": str(rules)})
    curate(recipe)
    rules.write_text("[all.too_short]\nwords = {least = 4}\n")
    with pytest.raises(ValueError, match=r"other files of step#1 \(heuristics\): .*mine.toml"):
        curate(recipe)
