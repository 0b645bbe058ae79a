"""`run.deterministic` on a GPU: flash attention, cuBLAS, our kernels and graphs give the same bits twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from random_delays import drawn, steady_metrics, wide_shape, write_slow_grader
from small_runs import weights
from tiny_world import rl_recipe

from foresail.recipe.tables.parts import Engine, Model, Run
from foresail.recipe.tables.reward import Reward
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.session import Outcome
from foresail.train.stages.rl import run_rl

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def train(
    tokenizer: Path, root: Path, dtype: Literal["float32", "bfloat16"], rollout: dict[str, Any]
) -> Outcome:
    root.mkdir(exist_ok=True)
    shape = wide_shape(Tokenizer.load(tokenizer).vocab_size)
    recipe = rl_recipe(
        tokenizer,
        root,
        run=Run(name="rl", root=str(root), device="cuda", deterministic=True),
        model=Model(shape=shape, tokenizer=str(tokenizer), dtype=dtype),
        reward=Reward(grader=write_slow_grader(root, seed=root.name), workers=3),
        steps=3,
        prompts_per_step=12,
        samples_per_prompt=16,
        updates_per_step=2,
        micro_batch_tokens=1024,
        engine=Engine(max_running=64),
        rollout=rollout,
    )
    return run_rl(recipe)


@pytest.mark.parametrize("drafts", ["off", "on"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_equal_bit_for_bit(
    tiny_tokenizer: Path, tmp_path: Path, dtype: Literal["float32", "bfloat16"], drafts: str
) -> None:
    one, other = (
        train(tiny_tokenizer, tmp_path / name, dtype, {"drafts": drafts}) for name in ("one", "other")
    )
    assert drawn(one.run) == drawn(other.run)
    assert steady_metrics(one.run) == steady_metrics(other.run)
    assert torch.equal(weights(one.checkpoint), weights(other.checkpoint))
