"""Whole runs that train low-rank pairs: they learn, stop anywhere, and leave an ordinary checkpoint."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from small_runs import train, weights
from tiny_world import rl_recipe, sft_recipe, write_lines

from foresail.data.made.arithmetic import make_problems
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Lora, Model, Optimizer, Problems
from foresail.recipe.tables.policy_loss import Loss
from foresail.runlog.directory import RunDirectory
from foresail.train.references import frozen as frozen_model
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

PAIRS = Lora(rank=4, alpha=8.0)
TIMES = (
    "timing_s/",
    "perf/",
    "rollout/tokens_per_second",
    "rollout/groups_surplus",
    "rollout/groups_cancelled",
)


def all_files(checkpoint: Path) -> dict[str, torch.Tensor]:
    """Every tensor of a checkpoint: merged weights, pairs, optimiser."""
    return {
        f"{file.relative_to(checkpoint)}: {name}": tensor
        for file in sorted(checkpoint.rglob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }


def untimed(run: Path) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in record.items() if not name.startswith(TIMES)}
        for record in RunDirectory(run).read_metrics()
    ]


def test_rewards_rise(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """Where the answer is always 3, a few numbers beside frozen weights find that out."""
    prompts = [problem.prompt[-1].content for problem in make_problems(60, seed=0, steps=(2, 2))]
    data = write_lines(tmp_path / "threes.jsonl", [{"prompt": text, "answer": "3"} for text in prompts])
    _, records = train(
        tiny_checkpoint,
        tmp_path,
        data=Problems(source=str(data)),
        steps=15,
        prompts_per_step=8,
        samples_per_prompt=16,
        updates_per_step=4,
        dynamic_sampling=DynamicSampling(enabled=False),
        optimizer=Optimizer(lr=5e-3),
        lora=PAIRS,
    )
    scores = [record["critic/score/mean"] for record in records]
    assert scores[0] < 0.2 and scores[-1] > 0.4
    assert max(record["rollout/logprob_abs_diff"] for record in records) < 1e-5


@pytest.mark.parametrize(("dtype", "states"), [("float32", "float32"), ("bfloat16", "8bit")])
def test_a_stopped_run_goes_on_exactly(
    tiny_checkpoint: Path, tmp_path: Path, dtype: Any, states: Any
) -> None:
    """Four steps in one go, and four in two: checkpoints and logs are equal bit for bit."""
    changes = {
        "steps": 4,
        "updates_per_step": 2,
        "model": Model(path=str(tiny_checkpoint), dtype=dtype),
        "optimizer": Optimizer(lr=5e-3, states=states),
        "lora": PAIRS,
    }
    whole = run_rl(rl_recipe(tiny_checkpoint, tmp_path / "whole", **changes))
    run = RunDirectory(tmp_path / "parts" / "rl")
    shutil.copytree(whole.run, run.path)
    shutil.rmtree(run.checkpoint_path(4))  # killed in step 4
    parts = run_rl(rl_recipe(tiny_checkpoint, tmp_path / "parts", **changes), resume=True)

    one, other = all_files(whole.checkpoint), all_files(parts.checkpoint)
    assert one.keys() == other.keys() and sum("lora_B" in name for name in one) == 14
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert untimed(parts.run) == untimed(whole.run)


def test_only_targets_change_and_only_they_are_optimised(tiny_checkpoint: Path, tmp_path: Path) -> None:
    lora = Lora(rank=2, targets=("v", "down"))
    outcome, _ = train(tiny_checkpoint, tmp_path, lora=lora, optimizer=Optimizer(lr=1e-2))
    before, after = (
        load_file(folder / "model.safetensors") for folder in (tiny_checkpoint, outcome.checkpoint)
    )
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {
        f"model.layers.{layer}.{name}_proj.weight" for layer in (0, 1) for name in ("self_attn.v", "mlp.down")
    }
    states = load_file(outcome.checkpoint / "trainer" / "optimizer.safetensors")
    assert {name.rpartition(".")[2] for name in states} == {"A", "B"}


def test_the_reference_is_the_model_without_its_pairs(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def load_twice(*_: Any, **__: Any) -> None:
        raise AssertionError("the reference takes memory of its own")

    monkeypatch.setattr(frozen_model, "open_model", load_twice)
    loss, optimizer = Loss(kl_weight=0.1), Optimizer(lr=1e-2)
    _, records = train(tiny_checkpoint, tmp_path, steps=3, loss=loss, optimizer=optimizer, lora=PAIRS)
    distances = [record["actor/kl"] for record in records]
    assert distances[0] == 0 and min(distances[1:]) > 1e-9


def test_fine_tuning_goes_on_from_fresh_weights_too(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    """There is no checkpoint to come back to: the weights follow from the seed."""
    recipe = sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path, steps=4, lora=PAIRS)
    run_sft(recipe)
    again = run_sft(recipe.model_copy(update={"steps": 6}), resume=True)
    root = {"run": recipe.run.model_copy(update={"root": str(tmp_path / "other")})}
    whole = run_sft(recipe.model_copy(update={"steps": 6, **root}))
    assert torch.equal(weights(again.checkpoint), weights(whole.checkpoint))


@pytest.mark.parametrize("change", [{"rank": 3}, {"alpha": 0.5}, {"targets": ("q", "down")}])
def test_other_pairs_than_those_of_the_checkpoint_are_refused(
    tiny_checkpoint: Path, tmp_path: Path, change: dict[str, Any]
) -> None:
    recipe = rl_recipe(tiny_checkpoint, tmp_path, steps=1, lora=PAIRS)
    checkpoint = run_rl(recipe).checkpoint
    other = recipe.model_copy(update={"steps": 2, "lora": PAIRS.model_copy(update=change)})
    with pytest.raises(ValueError, match=rf"lora\.{next(iter(change))} is "):
        run_rl(other, resume=True)
    (checkpoint / "trainer" / "manifest.json").unlink()
    (checkpoint / "trainer" / "recipe.toml").unlink()  # as in runs of earlier versions
    with pytest.raises(ValueError, match="set its rank, alpha and targets as they were"):
        run_rl(other, resume=True)


def test_without_the_weights_it_began_with_a_run_does_not_go_on(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(tiny_checkpoint, start)
    recipe = rl_recipe(start, tmp_path, steps=1, lora=PAIRS)
    outcome = run_rl(recipe)
    longer = recipe.model_copy(update={"steps": 2})
    shutil.rmtree(start)
    shutil.copytree(outcome.checkpoint, start)  # merged: close, but not what the pairs belong to
    with pytest.raises(ValueError, match=r"start is not what .* was trained beside"):
        run_rl(longer, resume=True)
    shutil.rmtree(start)
    with pytest.raises((ValueError, OSError), match="start"):
        run_rl(longer, resume=True)
    shutil.copytree(tiny_checkpoint, start)
    assert run_rl(longer, resume=True).checkpoint.name == "step_2"
