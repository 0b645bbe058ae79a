"""What a script may hand over, and what it is told where that will not do."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import foresail
from foresail.api.given import GivenFiles
from foresail.api.recipe import load_recipe
from foresail.recipe.reading.load import RecipeError
from foresail.recipe.stages.rl import Rl

ROWS = [{"prompt": "1 +2", "answer": 3}, {"prompt": "2 +2", "answer": 4}]
RL = {"stage": "rl", "model": {"path": "somewhere"}, "data": {"source": "a.jsonl"}, "steps": 3}


def written(rows: Any, folder: Path) -> list[dict[str, Any]]:
    files = GivenFiles(folder)
    path = Path(files.add_rows(rows, "data"))
    assert not path.exists()
    files.write()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


class Frame:
    """As pandas' DataFrame: it iterates over the names of its columns."""

    columns = ("prompt", "answer")

    def __iter__(self) -> Any:
        return iter(self.columns)

    def to_dict(self, how: str) -> Any:
        assert how == "records"
        return ROWS


@pytest.mark.parametrize("rows", [ROWS, tuple(ROWS), Frame()], ids=["list", "tuple", "frame"])
def test_rows_of_any_kind(rows: Any, tmp_path: Path) -> None:
    assert written(rows, tmp_path) == ROWS


def test_rows_from_a_generator_and_with_numbers_of_other_libraries(tmp_path: Path) -> None:
    import numpy as np

    rows = ({"prompt": "1 +2", "answer": np.int64(3), "levels": np.arange(2)} for _ in range(2))
    assert written(rows, tmp_path) == [{"prompt": "1 +2", "answer": 3, "levels": [0, 1]}] * 2


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "the data has no rows"),
        (["1 +2"], "row 1 of the data is a str; give rows as dicts"),
        ([ROWS[0], {"prompt": "x", "answer": object()}], "row 2 of the data: a object cannot be written"),
    ],
)
def test_rows_that_cannot_be_written(rows: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        written(rows, tmp_path)
    assert not list((tmp_path / "given").glob("*.jsonl"))


def test_a_recipe_from_a_dict_keywords_and_another_recipe(tmp_path: Path) -> None:
    recipe = load_recipe(RL, optimizer__lr=1e-5, sampling={"max_new_tokens": 5})
    assert isinstance(recipe, Rl)
    assert (recipe.optimizer.lr, recipe.sampling.max_new_tokens, recipe.sampling.temperature) == (
        1e-5,
        5,
        1.0,
    )
    again = load_recipe(recipe, steps=7, model={"dtype": "float32"})
    assert (again.steps, again.model.path, again.optimizer.lr) == (7, "somewhere", 1e-5)


def test_mistakes_are_told_together_and_leave_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError) as told:
        foresail.rl(model="somewhere", data=ROWS, step=3, optimizer={"lr": "fast"})
    assert "step: unknown key; the nearest is steps" in str(told.value)
    assert 'optimizer.lr must be a number, not "fast"' in str(told.value)
    assert list(tmp_path.iterdir()) == []


def test_a_recipe_of_another_stage(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"is a recipe for rl; call foresail\.rl"):
        foresail.sft(recipe=RL)


def test_a_model_as_an_object_needs_its_tokenizer() -> None:
    class Model:
        def save_pretrained(self, path: Path) -> None: ...

    with pytest.raises(ValueError, match="needs its tokenizer"):
        foresail.rl(model=Model(), data=ROWS, steps=1)
    with pytest.raises(ValueError, match="model is a float"):
        foresail.rl(model=1.5, data=ROWS, steps=1)


def test_a_model_of_transformers_and_a_tokenizer_by_its_folder(
    tiny_tokenizer: Path, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers")
    model = transformers.AutoModelForCausalLM.from_pretrained(tiny_checkpoint)
    result = foresail.sft(
        model=model,
        tokenizer=tiny_tokenizer,
        data=[{"prompt": "1 +2 +3", "completion": r"\boxed{6}"}],
        steps=1,
        batch_size=2,
        max_length=24,
        run={"name": "given", "root": tmp_path, "device": "cpu"},
    )
    assert (result.run / "given" / "model" / "config.json").is_file()
    assert len(result.metrics) == 1
    assert result.samples == []


def test_the_import_brings_neither_torch_nor_pydantic() -> None:
    code = "import sys, foresail; print([name for name in ('torch', 'pydantic', 'numpy') if name in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"foresail has no ppo; it has Result, .*evaluate"):
        _ = foresail.ppo
