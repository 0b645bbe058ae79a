"""The room that `foresail check` reckons for checkpoints is the room they take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_world import sft_recipe, tiny_shape

from foresail.recipe.estimates.disk import peak_bytes
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.parts import Checkpoints, Lora, Model, Optimizer
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints import checkpoint as checkpoint_module
from foresail.train.checkpoints.checkpoint import keep_weights_only, tidy
from foresail.train.stages.sft import run_sft


@pytest.mark.parametrize(
    ("dtype", "changes"),
    [
        ("float32", {}),
        ("bfloat16", {}),
        ("bfloat16", {"optimizer": Optimizer(states="8bit")}),
        ("bfloat16", {"lora": Lora(rank=4)}),
        ("float32", {"checkpoints": Checkpoints(dtype="bfloat16")}),
        ("float32", {"checkpoints": Checkpoints(dtype="bfloat16"), "lora": Lora(rank=4)}),
        ("bfloat16", {"checkpoints": Checkpoints(dtype="float32")}),
    ],
    ids=["float32", "bfloat16", "8bit", "lora", "rounded", "rounded-lora", "widened"],
)
def test_a_checkpoint_takes_what_was_reckoned(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path, dtype: Any, changes: dict[str, Any]
) -> None:
    recipe, shape = large_recipe(tiny_tokenizer, tiny_conversations, tmp_path, dtype, steps=1, **changes)
    checkpoint = run_sft(recipe).checkpoint
    reckoned = recipe.measure_checkpoint(shape, "cpu")
    assert bytes_of(checkpoint, tiny_tokenizer) == pytest.approx(reckoned.whole, rel=0.02)
    keep_weights_only(checkpoint)
    assert bytes_of(checkpoint, tiny_tokenizer) == pytest.approx(reckoned.weights, rel=0.02)


@pytest.mark.parametrize(
    "settings",
    [
        {"keep": 4, "resumable": 1},
        {"keep": 1, "resumable": 2},
        {"keep": 9, "resumable": 2, "every": 2, "minutes": None},
        {"keep": 2, "resumable": 1, "best": "train/lr", "best_is": "min"},
    ],
    ids=["weights-only", "keep-one", "few-steps", "best"],
)
def test_checkpoints_never_take_more_than_was_reckoned(
    tiny_tokenizer: Path,
    tiny_conversations: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, Any],
) -> None:
    """And at their height just that: a look at the folder whenever a new one is whole and no older one gone."""
    checkpoints = Checkpoints(**{"every": 1} | settings)
    recipe, shape = large_recipe(
        tiny_tokenizer, tiny_conversations, tmp_path, "float32", steps=6, checkpoints=checkpoints
    )
    looks = []

    def look(run: RunDirectory, *settings: Any) -> None:
        looks.append(
            sum(bytes_of(run.checkpoint_path(step), tiny_tokenizer) for step in run.checkpoint_steps())
        )
        tidy(run, *settings)

    monkeypatch.setattr(checkpoint_module, "tidy", look)
    run_sft(recipe)
    size = recipe.measure_checkpoint(shape, "cpu")
    reckoned = peak_bytes(size, checkpoints, recipe.steps, keeps_best=recipe.keeps_best)
    assert max(looks) == pytest.approx(reckoned, rel=0.02)


def large_recipe(
    tokenizer: Path, conversations: Path, root: Path, dtype: Any, **changes: Any
) -> tuple[Sft, ModelShape]:
    """Of a model that is large beside the headers of its files."""
    small = tiny_shape(Tokenizer.load(tokenizer).vocab_size)
    shape = small.model_copy(update={"hidden_size": 256, "intermediate_size": 1024, "head_dim": 128})
    model = Model(shape=shape, tokenizer=str(tokenizer), dtype=dtype)
    return sft_recipe(tokenizer, conversations, root, model=model, batch_size=1, **changes), shape


def bytes_of(checkpoint: Path, tokenizer: Path) -> int:
    """What a checkpoint takes, without the tokenizer's files."""
    taken = sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file())
    return taken - sum(file.stat().st_size for file in tokenizer.iterdir())
