"""Every algorithm that is shipped as a recipe trains: the file itself, with a tiny model and short samples."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from small_runs import weights
from tiny_world import MAX_NEW, MAX_PROMPT, PROBLEMS

from foresail.recipe.reading.load import load_recipe
from foresail.recipe.stages.rl import Rl
from foresail.runlog.directory import RunDirectory
from foresail.train.stages.rl import run_rl

FOLDER = Path(__file__).parents[3] / "recipes"
FILES = [file for file in sorted(FOLDER.glob("*.toml")) if load_recipe(file).stage == "rl"]


def test_there_are_recipes() -> None:
    assert len(FILES) >= 11


def in_small(file: Path, checkpoint: Path, root: Path) -> Rl:
    """Sizes change; what makes the algorithm does not."""
    shipped = load_recipe(file)
    assert isinstance(shipped, Rl)
    overrides = {
        "run.root": root,
        "run.device": "cpu",
        "model.path": checkpoint,
        "model.dtype": "float32",
        "data.source": PROBLEMS,
        "data.suffix": "",
        "data.difficulty": "none",
        "curriculum": "[]",
        "eval": "none",
        "eval_every": 0,
        "steps": 2 + shipped.critic_only_steps,
        "prompts_per_step": math.lcm(4, shipped.parts_per_pass),
        "samples_per_prompt": min(8, shipped.samples_per_prompt),
        "max_prompt_tokens": MAX_PROMPT,
        "sampling.max_new_tokens": MAX_NEW,
        "micro_batch_tokens": 512,
        "reward.overlong_buffer": min(2, shipped.reward.overlong_buffer),
        "optimizer.lr": 1e-3,
    }
    recipe = load_recipe(file, [f"{key}={value}" for key, value in overrides.items()])
    assert isinstance(recipe, Rl)
    return recipe


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_small_version_trains(file: Path, tiny_checkpoint: Path, tmp_path: Path) -> None:
    recipe = in_small(file, tiny_checkpoint, tmp_path)
    outcome = run_rl(recipe)
    assert outcome.finished
    records = [record for record in RunDirectory(outcome.run).read_metrics() if record["step"]]
    assert len(records) == recipe.steps
    for record in records[recipe.critic_only_steps :]:
        assert record["actor/grad_norm"] > 0 and math.isfinite(record["actor/pg_loss"])
        assert record["actor/updates"] == recipe.updates_per_step
        assert record["rollout/logprob_abs_diff"] < 1e-5
    assert not torch.equal(weights(outcome.checkpoint), weights(tiny_checkpoint))
