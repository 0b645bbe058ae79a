"""A run's folder where a recipe names a checkpoint: its best one, or its newest."""

from __future__ import annotations

from pathlib import Path

import pytest

from foresail.recipe.checkpoint_path import checkpoint_of
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.rl import Rl

RL = """
stage = "rl"
steps = 1
model.path = "{run}"
data.source = "arithmetic:count=9"
loss = {{ kl_weight = 0.1, reference = "{run}" }}
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """With checkpoints of steps 2, 9 and 10, and one that is being written."""
    folder = tmp_path / "sft"
    for name in ("step_2", "step_9", "step_10", ".tmp-step_11", "step_11.aside"):
        (folder / "checkpoints" / name).mkdir(parents=True)
        (folder / "checkpoints" / name / "config.json").write_text("{}")
    return folder


def test_the_newest_checkpoint_is_taken_and_the_best_where_one_is_kept(run: Path) -> None:
    assert checkpoint_of(str(run)) == str(run / "checkpoints/step_10")
    (run / "checkpoints/best").symlink_to("step_9")
    assert checkpoint_of(str(run)) == str(run / "checkpoints/step_9")


def test_all_else_stays_as_it_is(run: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    (begun / "checkpoints").mkdir(parents=True)
    for path in (run / "checkpoints/step_2", begun, tmp_path / "nowhere", Path("owner/name")):
        assert checkpoint_of(str(path)) == str(path)


def test_the_recipe_names_the_checkpoint_from_then_on(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "rl.toml"
    file.write_text(RL.format(run=run))
    recipe = load_recipe(file)
    file.write_text(to_toml(recipe))
    (run / "checkpoints/step_12").mkdir()  # the run went on meanwhile
    again = load_recipe(file)
    assert again == recipe and again.model.path == str(run / "checkpoints/step_10")
    assert isinstance(again, Rl) and again.loss.reference == again.model.path
