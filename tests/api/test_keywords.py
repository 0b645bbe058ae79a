"""Functions called with keywords that they do not have, or with values of other types: what a user reads."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import foresail
from foresail.recipe.reading.load import RecipeError

ROWS = [{"prompt": "1 +2", "answer": "3"}]
RL: dict[str, Any] = {"model": "m", "data": ROWS, "steps": 3}
SFT: dict[str, Any] = {"model": "m", "data": [{"prompt": "a", "completion": "b"}], "steps": 3}
CALLS: list[tuple[Callable[[], Any], str]] = [
    (lambda: foresail.rl(**RL, temprature=0.5), "temprature: unknown key; the nearest is sampling.temperature"),
    (lambda: foresail.rl(**RL, temperature=0.5), "temperature: unknown key; the nearest is sampling.temp"),
    (lambda: foresail.rl(**RL, num_generations=8), "num_generations: unknown key; it is samples_per_prompt here"),
    (lambda: foresail.rl(**RL, optimizer={"lrr": 1.0}), "optimizer.lrr: unknown key; the nearest is optimizer.lr"),
    (lambda: foresail.rl(**RL, optimizer__learning_rate=1.0), "optimizer.learning_rate: unknown key; it is optim"),
    (lambda: foresail.rl(**RL, optimizer=5), "optimizer must be a table ([optimizer]) with keys like name"),
    (lambda: foresail.rl(**RL, lora=True), "lora must be a table ([lora]) with keys like rank, alpha, targets"),
    (lambda: foresail.rl(**RL, args=object()), "args: unknown key; every setting is a key of its own"),
    (lambda: foresail.rl("m", steps=3, train_dataset=ROWS), "train_dataset: unknown key; training data is data"),
    (lambda: foresail.rl(**RL, run=5), "run is a int; give a name, or a table"),
    (lambda: foresail.rl(**RL, recipe=5), "recipe is a int; give a TOML file, a dict, or a recipe"),
    (lambda: foresail.rl(**RL, eval=5), "eval is a int; give a file, or rows as dicts"),
    (lambda: foresail.rl(**RL, reward=5), 'reward.grader must be text in quotes, not 5'),
    (lambda: foresail.rl(**{**RL, "data": 5}), "data is a int; give a file, or rows as dicts"),
    (lambda: foresail.rl(**{**RL, "data": {"source": ROWS, "sufix": "a"}}), "data.sufix: unknown key; the nearest"),
    (lambda: foresail.rl(**{**RL, "data": [{"source": ROWS, "sufix": "a"}]}), "data.sufix: unknown key; the near"),
    (lambda: foresail.rl(**{**RL, "steps": "ten"}), 'steps must be a whole number, not "ten"'),
    (lambda: foresail.sft(**SFT, num_train_epochs=3), "a run is counted in steps: steps = epochs x records"),
    (lambda: foresail.sft(**SFT, temperature=1), 'temperature: unknown key; stage = "sft" has no such key'),
    (lambda: foresail.dpo(**RL, beta=0.1), "beta: unknown key; it is loss.beta here"),
    (lambda: foresail.online_dpo(**RL, max_new_tokns=9), "the nearest is sampling.max_new_tokens"),
    (lambda: foresail.distill("m", 5, ROWS, 3), "teacher must be a table ([teacher]) with keys like path"),
    (lambda: foresail.reward_model(**RL, centre=1), "centre: unknown key; the nearest is center"),
    (lambda: foresail.pretrain("m", 5), "stages must be a table ([stages]), several ([[stages]]), not 5"),
    (lambda: foresail.load_recipe({"stage": "rl"}, stepz=3), "stepz: unknown key"),
    (lambda: foresail.resume(5), "run is a int; give a path, the folder of a run"),
    (lambda: foresail.evaluate("m", ROWS, sufix="a"), "evaluate: sufix: unknown keyword; the nearest is suffix"),
    (lambda: foresail.evaluate("m", ROWS, sample=4), "evaluate: sample: unknown keyword; the nearest is samples"),
    (lambda: foresail.evaluate("m", ROWS, temperature=1), "temperature: unknown keyword; the nearest is sampling"),
    (lambda: foresail.evaluate("m", ROWS, limit="a"), 'evaluate: limit must be a whole number, not "a"'),
    (lambda: foresail.evaluate("m", ROWS, sampling=5), "evaluate: sampling must be a dict of keys and val"),
    (lambda: foresail.evaluate("m", ROWS, sampling={"top_p": 2}), "sampling.top_p must be at most 1, not 2"),
    (lambda: foresail.evaluate("m", ROWS, sampling={"temprature": 1}), "the nearest is sampling.temperature"),
    (lambda: foresail.evaluate("m", 5), "data is a int; give a file, or rows as dicts"),
    (lambda: foresail.evaluate(5, ROWS), "model is a int; give a path"),
    (lambda: foresail.generate("m", "hi", temprature=0.5), "temprature: unknown keyword; the nearest is temp"),
    (lambda: foresail.generate("m", "hi", max_tokens=5), "max_tokens: unknown keyword; it is max_new_tokens here"),
    (lambda: foresail.generate("m", "hi", zebra=5), "zebra: unknown keyword; docs/python.md says what"),
    (lambda: foresail.generate("m", "hi", temperature="hot"), 'temperature must be a number, not "hot"'),
    (lambda: foresail.generate("m", "hi", max_new_tokens=0), "max_new_tokens must be greater than 0, not 0"),
    (lambda: foresail.generate("m", [5]), "prompt 1 is a int; give text, or a conversation"),
    (lambda: foresail.generate("m", []), "there is no prompt"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_what_a_wrong_call_is_told(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    call, words = CALLS[number]
    with pytest.raises(ValueError) as told:  # noqa: PT011, of which RecipeError is one
        call()
    assert not isinstance(told.value, ValidationError) and "pydantic" not in str(told.value)
    assert words in str(told.value), str(told.value)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def test_all_that_is_wrong_with_a_call_is_told_at_once() -> None:
    with pytest.raises(RecipeError, match="evaluate: 3 mistakes") as told:
        foresail.evaluate("m", ROWS, sufix="a", limit=0, sampling={"top_k": -1})
    lines = str(told.value).splitlines()[1:]
    assert [line.split()[0] for line in lines] == ["sufix:", "limit", "sampling.top_k"]


def test_none_unsets_a_key_and_says_nothing_as_a_name(tmp_path: Path) -> None:
    given = {"stage": "rl", "model": {"path": "m"}, "data": {"source": "arithmetic:count=9"}, "steps": 2}
    source = {**given, "lora": {"rank": 3}, "optimizer": {"lr": 1.0, "warmup": 3}}
    recipe: Any = foresail.load_recipe(source, lora=None, optimizer__lr=None, eval=None, sampling=None)
    assert (recipe.lora, recipe.optimizer.lr, recipe.optimizer.warmup) == (None, 1e-6, 3)
    nested: Any = foresail.load_recipe(source, optimizer={"lr": None})
    assert (nested.optimizer.lr, nested.lora.rank) == (1e-6, 3)
