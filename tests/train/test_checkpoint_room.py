"""The room that `foresail check` reckons for a checkpoint is the room it takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tiny_world import sft_recipe, tiny_shape

from foresail.recipe.parts import Lora, Model, Optimizer
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.sft import run_sft


@pytest.mark.parametrize(
    ("dtype", "changes"),
    [
        ("float32", {}),
        ("bfloat16", {}),
        ("bfloat16", {"optimizer": Optimizer(states="8bit")}),
        ("bfloat16", {"lora": Lora(rank=4)}),
    ],
    ids=["float32", "bfloat16", "8bit", "lora"],
)
def test_a_checkpoint_takes_what_was_reckoned(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path, dtype: Any, changes: dict[str, Any]
) -> None:
    small = tiny_shape(Tokenizer.load(tiny_tokenizer).vocab_size)
    # large beside the headers of its files
    shape = small.model_copy(update={"hidden_size": 256, "intermediate_size": 1024, "head_dim": 128})
    model = Model(shape=shape, tokenizer=str(tiny_tokenizer), dtype=dtype)
    recipe = sft_recipe(
        tiny_tokenizer, tiny_conversations, tmp_path, model=model, steps=1, batch_size=1, **changes
    )
    checkpoint = run_sft(recipe).checkpoint
    taken = sum(file.stat().st_size for file in checkpoint.rglob("*") if file.is_file())
    taken -= sum(file.stat().st_size for file in tiny_tokenizer.iterdir())
    reckoned = recipe.estimate_memory(shape, "cpu").checkpoint
    assert taken == pytest.approx(reckoned, rel=0.02)
