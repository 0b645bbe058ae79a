"""Every way to train, on a GPU: two steps in bfloat16, log-probabilities near those of the rollout."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from random_delays import wide_shape, write_slow_grader
from tiny_world import rl_recipe

from foresail.recipe.tables import parts
from foresail.recipe.tables.reward import Reward
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.stages.rl import run_rl

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "float16": {},
    "8bit": {"optimizer": parts.Optimizer(states="8bit")},
    "recompute": {"recompute": True},
    "lora": {"lora": parts.Lora(rank=4)},
    "lora, recompute": {"lora": parts.Lora(rank=4, targets=("q", "down")), "recompute": True},
    "critic": {"critic": parts.Critic(), "advantage": parts.Advantage(kind="gae")},
    "critic, recompute": {
        "critic": parts.Critic(),
        "advantage": parts.Advantage(kind="gae"),
        "recompute": True,
    },
    "critic's head": {"critic": parts.Critic(kind="head"), "advantage": parts.Advantage(kind="gae")},
    "exact": {"engine": parts.Engine(max_running=64, batch_invariant=True)},
}


@pytest.mark.parametrize("way", WAYS)
def test_two_steps(tiny_tokenizer: Path, tmp_path: Path, way: str) -> None:
    settings: dict[str, Any] = {
        "run": parts.Run(name="rl", root=str(tmp_path), device="cuda"),
        "model": parts.Model(
            shape=wide_shape(Tokenizer.load(tiny_tokenizer).vocab_size),
            tokenizer=str(tiny_tokenizer),
            dtype="float16" if way == "float16" else "bfloat16",
        ),
        "reward": Reward(grader=write_slow_grader(tmp_path, seed="0"), workers=0),
        "steps": 2,
        "prompts_per_step": 12,
        "samples_per_prompt": 16,
        "updates_per_step": 2,
        "micro_batch_tokens": 1024,
        "engine": parts.Engine(max_running=64),
    }
    outcome = run_rl(rl_recipe(tiny_tokenizer, tmp_path, **(settings | WAYS[way])))
    records = RunDirectory(outcome.run).read_metrics()[-2:]
    assert [record["step"] for record in records] == [1, 2]
    for record in records:
        assert math.isfinite(record["actor/grad_norm"]) and record["actor/grad_norm"] > 0
        assert record["rollout/logprob_abs_diff"] < {"exact": 1e-6, "float16": 0.003}.get(way, 0.02)
