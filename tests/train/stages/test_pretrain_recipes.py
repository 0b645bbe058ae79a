"""Every shipped recipe of pretraining checks and trains: the file itself, with small corpora and a tiny model."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from foresail.data.corpus.tokenize import tokenize
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.pretrain import Pretrain
from foresail.recipe.stages.pretrain_stage import PretrainStage
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.train import train_bpe
from foresail.train.stages.pretrain import run_pretrain

FOLDER = Path(__file__).parents[3] / "recipes"
FILES = [file for file in sorted(FOLDER.glob("*.toml")) if load_recipe(file).stage == "pretrain"]
SMALLER = {"vocab_size": 300, "hidden_size": 16, "intermediate_size": 16, "num_layers": 1, "head_dim": 8}


def small_stage(stage: PretrainStage, longest: int) -> PretrainStage:
    """So much shorter that 16 tokens are the longest row; shares of the stage stay as they are."""
    length = max(4, 16 * stage.length // longest)
    tokens = 16 * length

    def share(part: int | None) -> int | None:
        return None if part is None else tokens * part // stage.tokens

    return stage.model_copy(
        update={
            "length": length,
            "tokens": tokens,
            "batch_tokens": 4 * length,
            "batch_start_tokens": None,
            **{
                key: share(getattr(stage, key))
                for key in ("batch_warmup_tokens", "warmup_tokens", "decay_tokens")
            },
        }
    )


def in_small(recipe: Pretrain) -> Pretrain:
    shape = recipe.model.shape
    assert shape is not None
    experts = shape.experts and shape.experts.model_copy(update={"routed": 6, "inner_size": 8})
    small = ModelShape.model_validate(shape.model_dump() | SMALLER | {"max_context": 16, "experts": experts})
    longest = recipe.max_length
    return Pretrain.model_validate(
        recipe.model_dump()
        | {
            "run": {"root": "runs", "name": "run", "device": "cpu"},
            "model": {"shape": small.model_dump(), "tokenizer": "tokenizer", "dtype": "float32"},
            "stages": [small_stage(stage, longest).model_dump() for stage in recipe.stages],
            "micro_batch_tokens": 64,
        }
    )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_small_version_checks_and_trains(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = load_recipe(file)
    assert isinstance(shipped, Pretrain)
    train_bpe(["some words"], vocab_size=270, alphabet="bytes").save("tokenizer")
    Path("texts.jsonl").write_text(
        "".join(json.dumps({"text": "some words " * n}) + "\n" for n in range(1, 30))
    )
    for _, corpus in shipped.corpora():
        Path(corpus.source).parent.mkdir(parents=True, exist_ok=True)
        tokenize(["texts.jsonl"], tokenizer="tokenizer", out=Path(corpus.source), workers=1)
    recipe = in_small(shipped)
    assert preflight(recipe).refusals == ()
    outcome = run_pretrain(recipe)
    records = RunDirectory(outcome.run).read_metrics()
    assert outcome.finished and len(records) == recipe.steps >= 8
    assert all(math.isfinite(record["train/loss"]) for record in records)
    assert {record["train/stage"] for record in records} == {*range(1, len(recipe.stages) + 1)}
    config = json.loads((outcome.checkpoint / "config.json").read_text())
    assert config["rope_theta"] == shipped.stages[-1].rope_theta
    assert all(f"val/loss/{corpus.label}" in records[-1] for corpus in recipe.held_out)
