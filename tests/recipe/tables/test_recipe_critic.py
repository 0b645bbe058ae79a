"""What a recipe with a critic, with single samples or with several passes must hold, and what it comes to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import load_recipe
from foresail.recipe.reading.preflight import preflight
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables import parts
from foresail.recipe.tables.dynamic_sampling import DynamicSampling

GAE = parts.Advantage(kind="gae")
UNFILTERED = DynamicSampling(enabled=False)


def rl(**changes: Any) -> Rl:
    given = {
        "model": parts.Model(path="m"),
        "data": parts.Problems(source="arithmetic:count=99"),
        "steps": 10,
    }
    return Rl(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"advantage": GAE}, r'advantage.kind = "gae" needs a critic; add a table \[critic\]'),
        ({"critic": parts.Critic()}, r'advantage.kind is "grpo"; set advantage.kind = "gae", or remove'),
        (
            {"advantage": GAE, "critic": parts.Critic(kind="head", path="c")},
            'critic.kind is "head"; remove critic.path',
        ),
        (
            {"advantage": GAE, "critic": parts.Critic(warmup_steps=10)},
            "leaves the policy none of the 10 steps; set critic.warmup_steps = 1",
        ),
        ({"samples_per_prompt": 1}, '"grpo" compares the samples of a problem; set samples_per_prompt = 2'),
        (
            {"samples_per_prompt": 1, "advantage": GAE, "critic": parts.Critic()},
            "would drop all; set dynamic_sampling.enabled = false",
        ),
        (
            {"updates_per_step": 16, "passes_per_step": 3},
            "updates_per_step 16 is not divisible by passes_per_step 3; try updates_per_step = 15 or 18",
        ),
        (
            {"prompts_per_step": 30, "updates_per_step": 8, "passes_per_step": 2},
            "not divisible by updates_per_step 8 in 2 passes; try prompts_per_step = 28 or 32",
        ),
    ],
)
def test_mistakes_are_named_with_their_mend(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        rl(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"advantage": GAE, "critic": parts.Critic()},
        {"advantage": GAE, "critic": parts.Critic(), "samples_per_prompt": 1, "dynamic_sampling": UNFILTERED},
        {
            "advantage": parts.Advantage(kind="reinforce++"),
            "samples_per_prompt": 1,
            "dynamic_sampling": UNFILTERED,
        },
    ],
)
def test_what_is_fine_is_fine_and_survives_its_own_toml(changes: dict[str, Any], tmp_path: Path) -> None:
    recipe = rl(**changes)
    (tmp_path / "recipe.toml").write_text(to_toml(recipe))
    assert load_recipe(tmp_path / "recipe.toml") == recipe


def test_a_critics_optimizer_keeps_its_own_defaults() -> None:
    given = parts.Critic.model_validate({"optimizer": {"warmup": 3}})
    assert (given.optimizer.lr, given.optimizer.warmup) == (1e-5, 3)


def test_passes_are_updates_over_the_same_samples() -> None:
    """128 problems, mini-batches of 32, 16 updates: four to a pass."""
    recipe = rl(prompts_per_step=128, samples_per_prompt=2, updates_per_step=16, passes_per_step=4)
    batches = recipe.count_batches()
    assert (batches.step.prompts, batches.step.samples, batches.step.updates) == (128, 256, 16)
    assert (batches.update.prompts, batches.update.samples, batches.update.updates) == (32, 64, 1)
    assert batches.run.updates == 160


def write_model(folder: Path, context: int) -> str:
    folder.mkdir()
    config = {
        "model_type": "llama", "vocab_size": 100, "hidden_size": 16, "intermediate_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": context,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    return str(folder)


def test_the_preflight_looks_at_the_critics_own_model(tmp_path: Path) -> None:
    def refusals(path: str) -> list[str]:
        found = preflight(rl(advantage=GAE, critic=parts.Critic(path=path), dynamic_sampling=UNFILTERED))
        return [refusal for refusal in found.refusals if refusal.startswith("critic.path")]

    assert "no checkpoint directory" in refusals(str(tmp_path / "nowhere"))[0]
    weightless, short = refusals(write_model(tmp_path / "short", 64))
    assert "neither model.safetensors nor" in weightless
    assert "samples of up to 2048 tokens exceed its context of 64" in short
    assert len(refusals(write_model(tmp_path / "long", 4096))) == 1  # its weights


def test_the_preflight_warns_of_what_hardly_learns(tmp_path: Path) -> None:
    def warnings(critic: parts.Critic, sampling: DynamicSampling) -> str:
        return " | ".join(preflight(rl(advantage=GAE, critic=critic, dynamic_sampling=sampling)).warnings)

    assert "try 1e-3" in warnings(parts.Critic(kind="head"), UNFILTERED)
    quick = parts.Critic(kind="head", optimizer=parts.Optimizer(lr=1e-3))
    assert "critic" not in warnings(quick, UNFILTERED)
    assert "with a critic every group has a learning signal" in warnings(quick, DynamicSampling())
