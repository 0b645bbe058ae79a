"""Worked examples and generators, looked at before a run."""

from pathlib import Path

import pytest

from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import preflight

RECIPE = Path(__file__).parents[3] / "recipes/flagship/word-problems.toml"


def refusals(*overrides: str) -> tuple[str, ...]:
    """Without those about the model, which is not here."""
    found = preflight(load_recipe(RECIPE, overrides)).refusals
    return tuple(line for line in found if not line.startswith("model.path"))


def test_the_shipped_recipe_is_refused_for_nothing_but_its_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(RECIPE.parents[2])  # paths in recipes count from the folder of the command
    assert refusals() == ()
    missing = refusals("eval.examples=nowhere.jsonl")
    assert len(missing) == 1 and missing[0].startswith("eval.examples nowhere.jsonl does not exist")


@pytest.mark.parametrize("name", ["word-problems", "programs", "arithmetic"])
def test_a_generator_needs_a_count(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(RECIPE.parents[2])
    assert refusals(f"data.source={name}:seed=1") == (
        f"data.source {name} needs a count; write {name}:count=2000",
    )
