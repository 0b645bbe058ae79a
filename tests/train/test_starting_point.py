"""Where a stage starts: a checkpoint or fresh weights, with a tokenizer that fits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny_world import HELD_OUT, tiny_shape

from foresail.evaluation.answers import AnsweringModel
from foresail.evaluation.evaluator import evaluate_checkpoint
from foresail.evaluation.target import Target
from foresail.model.hf import build_model
from foresail.recipe.tables.parts import Model, Problems, Sampling
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.learner import save_weights
from foresail.train.starting_point import load_model_and_tokenizer

CPU = torch.device("cpu")


@pytest.fixture
def windowed(tiny_tokenizer: Path, tmp_path: Path) -> Path:
    """A Mistral of 32 positions, whose layers see the last 24."""
    tokenizer = Tokenizer.load(tiny_tokenizer)
    shape = tiny_shape(tokenizer.vocab_size).model_copy(update={"family": "mistral"})
    save_weights(build_model(shape, seed=0), tokenizer, tmp_path / "mistral")
    path = tmp_path / "mistral" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"sliding_window": 24}))
    return path.parent


def test_fresh_weights_follow_from_the_seed(tiny_tokenizer: Path) -> None:
    shape = tiny_shape(Tokenizer.load(tiny_tokenizer).vocab_size)
    settings = Model(shape=shape, tokenizer=str(tiny_tokenizer))
    one, two, other = (
        load_model_and_tokenizer(settings, seed=seed, device=CPU, max_length=20)[0] for seed in (0, 0, 1)
    )
    assert torch.equal(one.embed.weight, two.embed.weight)
    assert not torch.equal(one.embed.weight, other.embed.weight)


def test_a_sliding_window_will_do_where_nothing_longer_is_run(windowed: Path) -> None:
    settings = Model(path=str(windowed))
    model, _ = load_model_and_tokenizer(settings, seed=0, device=CPU, max_length=24)
    assert model.shape.max_context == 24
    with pytest.raises(ValueError, match="sliding-window attention of 24 tokens is shorter"):
        load_model_and_tokenizer(settings, seed=0, device=CPU, max_length=25)


def test_such_a_model_can_be_evaluated_within_its_window(windowed: Path, tmp_path: Path) -> None:
    problems, output = Problems(source=HELD_OUT), tmp_path / "found"
    results = evaluate_checkpoint(
        windowed, problems, Sampling(max_new_tokens=8), num_samples=0, output=output
    )
    assert len(results) == 20
    with pytest.raises(ValueError, match="the model's context of 24; set --max-new-tokens to 17"):
        evaluate_checkpoint(windowed, problems, Sampling(max_new_tokens=20), num_samples=0, output=output)
    target = Target(checkpoint=windowed)
    found = AnsweringModel(target).answer(["7 +5 *3"])
    assert found == AnsweringModel(target, max_new_tokens=17).answer(["7 +5 *3"])


def test_a_tokenizer_with_more_ids_than_the_model_has_rows_is_refused(tiny_tokenizer: Path) -> None:
    num_ids = Tokenizer.load(tiny_tokenizer).vocab_size
    settings = Model(shape=tiny_shape(num_ids - 1), tokenizer=str(tiny_tokenizer))
    with pytest.raises(
        ValueError, match=f"has {num_ids} ids but the model only {num_ids - 1} embedding rows"
    ):
        load_model_and_tokenizer(settings, seed=0, device=CPU, max_length=20)
