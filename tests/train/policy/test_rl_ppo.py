"""PPO end to end: a critic beside the policy, in a few steps of a tiny model on arithmetic."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from small_runs import train, weights
from tiny_world import rl_recipe, write_lines

from foresail.data.made.arithmetic import make_problems
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Advantage, Critic, Optimizer, Problems
from foresail.recipe.tables.policy_loss import Loss
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.stages.rl import run_rl

NAMES = {
    "critic/vf_loss",
    "critic/vf_clipfrac",
    "critic/vf_explained_var",
    "critic/values/mean",
    "critic/returns/mean",
    "critic/grad_norm",
    "critic/lr",
    "critic/advantages/mean",
}
RATES = {"model": 1e-3, "head": 1e-2}
TIMES = ("timing_s/", "perf/throughput", "rollout/tokens_per_second")


def ppo(kind: Any = "model", **critic: Any) -> dict[str, Any]:
    """What makes a run PPO."""
    settings = {"kind": kind, "optimizer": Optimizer(lr=RATES[kind])} | critic
    return {
        "advantage": Advantage(kind="gae"),
        "critic": Critic(**settings),
        "dynamic_sampling": DynamicSampling(enabled=False),
    }


def critic_files(checkpoint: Path) -> dict[str, torch.Tensor]:
    """All that is saved of a critic, by file and name."""
    files = sorted((checkpoint / "trainer" / "critic").rglob("*.safetensors"))
    assert files
    return {f"{file.name}: {name}": value for file in files for name, value in load_file(file).items()}


@pytest.mark.parametrize("kind", ["model", "head"])
def test_every_step_logs_the_critic_under_verls_names(
    tiny_checkpoint: Path, tmp_path: Path, kind: str
) -> None:
    outcome, records = train(tiny_checkpoint, tmp_path, steps=3, updates_per_step=2, **ppo(kind))
    assert outcome.finished and len(records) == 3
    for record in records:
        assert record.keys() >= NAMES | {"actor/pg_loss", "actor/grad_norm"}
        assert record["critic/vf_loss"] > 0 and record["critic/grad_norm"] > 0
        assert record["critic/lr"] == RATES[kind]
        assert record["critic/advantages/mean"] == pytest.approx(0, abs=1e-5)  # whitened over the step
    assert records[0]["critic/values/mean"] == 0  # nothing is expected at first
    assert records[0]["critic/returns/mean"] != 0 and records[1]["critic/values/mean"] != 0
    assert not torch.equal(weights(outcome.checkpoint), weights(tiny_checkpoint))


def test_returns_are_the_rewards_where_nothing_is_discounted(tiny_checkpoint: Path, tmp_path: Path) -> None:
    outcome, records = train(tiny_checkpoint, tmp_path, steps=2, **ppo())
    for record in records:
        rows = RunDirectory(outcome.run).read_rollouts(record["step"])
        tokens = [row["reward"] for row in rows for _ in range(sum(row["loss_mask"]))]
        assert record["critic/returns/mean"] == pytest.approx(sum(tokens) / len(tokens), abs=1e-6)


@pytest.mark.parametrize("kind", ["model", "head"])
def test_a_critic_that_learns_alone_leaves_the_policy_as_it_was(
    tiny_checkpoint: Path, tmp_path: Path, kind: str
) -> None:
    recipe = rl_recipe(tiny_checkpoint, tmp_path, steps=3, updates_per_step=2, **ppo(kind, warmup_steps=2))
    recipe = recipe.model_copy(update={"checkpoints": recipe.checkpoints.model_copy(update={"keep": 9})})
    outcome = run_rl(recipe)
    run = RunDirectory(outcome.run)
    records = [record for record in run.read_metrics() if record["step"]]
    assert [("actor/pg_loss" in record, record["critic/grad_norm"] > 0) for record in records] == [
        (False, True), (False, True), (True, True),
    ]  # fmt: skip
    before = weights(tiny_checkpoint)
    same = [torch.equal(weights(run.checkpoint_path(step)), before) for step in (1, 2, 3)]
    assert same == [True, True, False]
    assert [read_progress(run.checkpoint_path(step)).updates for step in (1, 2, 3)] == [0, 0, 2]


def test_rates_count_the_policys_and_the_critics_updates_apart(tiny_checkpoint: Path, tmp_path: Path) -> None:
    schedule = {"warmup": 2, "schedule": "linear"}
    settings = ppo(warmup_steps=1, optimizer=Optimizer(lr=1e-3, **schedule))
    _, records = train(
        tiny_checkpoint, tmp_path, steps=3, updates_per_step=2, optimizer=Optimizer(lr=1e-4, **schedule),
        **settings,
    )  # fmt: skip
    # the critic's six updates: 1/2, 1 | 3/4, 1/2 | 1/4, 0 of its rate; the policy's four: 1/2, 1 | 1/2, 0
    assert [record["critic/lr"] for record in records] == pytest.approx([0.75e-3, 0.625e-3, 0.125e-3])
    assert [record.get("actor/lr") for record in records] == [
        None, pytest.approx(0.75e-4), pytest.approx(0.25e-4),
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["model", "head"])
def test_a_stopped_run_goes_on_exactly(tiny_checkpoint: Path, tmp_path: Path, kind: str) -> None:
    """Four steps in one go, and four in two: checkpoints and logs are equal bit for bit."""
    changes = {"steps": 4, "updates_per_step": 2, **ppo(kind, lam=0.9, warmup_steps=1)}
    whole = run_rl(rl_recipe(tiny_checkpoint, tmp_path / "whole", **changes))
    run = RunDirectory(tmp_path / "parts" / "rl")
    shutil.copytree(whole.run, run.path)
    shutil.rmtree(run.checkpoint_path(4))  # killed in step 4
    assert run.checkpoint_steps() == [3]
    parts = run_rl(rl_recipe(tiny_checkpoint, tmp_path / "parts", **changes), resume=True)

    one, other = critic_files(whole.checkpoint), critic_files(parts.checkpoint)
    assert one.keys() == other.keys() and len(one) > 4
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert torch.equal(weights(whole.checkpoint), weights(parts.checkpoint))
    assert untimed(RunDirectory(parts.run)) == untimed(RunDirectory(whole.run))


def untimed(run: RunDirectory) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in record.items() if not name.startswith(TIMES)}
        for record in run.read_metrics()
    ]


def test_the_starting_checkpoints_are_not_needed_to_go_on(tiny_checkpoint: Path, tmp_path: Path) -> None:
    start, judge = tmp_path / "start", tmp_path / "judge"
    shutil.copytree(tiny_checkpoint, start)
    shutil.copytree(tiny_checkpoint, judge)
    first = rl_recipe(start, tmp_path, steps=1, **ppo(path=str(judge)))
    run_rl(first)
    shutil.rmtree(start)
    shutil.rmtree(judge)
    assert run_rl(first.model_copy(update={"steps": 2}), resume=True).checkpoint.name == "step_2"


def test_a_damaged_critic_is_named(tiny_checkpoint: Path, tmp_path: Path) -> None:
    recipe = rl_recipe(tiny_checkpoint, tmp_path, steps=1, **ppo("head"))
    outcome = run_rl(recipe)
    (outcome.checkpoint / "trainer" / "critic" / "head.safetensors").write_bytes(b"half")
    with pytest.raises(ValueError, match=r"critic/head.safetensors is damaged: it has 4 bytes"):
        run_rl(recipe, resume=True)


@pytest.mark.parametrize("kind", ["model", "head"])
def test_micro_batches_change_policy_and_critic_by_rounding_only(
    tiny_checkpoint: Path, tmp_path: Path, kind: str
) -> None:
    found = []
    for tokens in (20, 100, 2000):
        outcome, _ = train(
            tiny_checkpoint,
            tmp_path / str(tokens),
            steps=1,
            updates_per_step=2,
            micro_batch_tokens=tokens,
            optimizer=Optimizer(lr=1e-3, eps=1e-4),
            loss=Loss(aggregation="seq-mean-token-mean"),  # other weights than the value loss has
            **ppo(kind, lam=0.9, optimizer=Optimizer(lr=RATES[kind], eps=1e-4)),
        )
        found.append((weights(outcome.checkpoint), critic_files(outcome.checkpoint)))
    (_, wanted), policy = found[-1], found[-1][0]
    assert (wanted["head.safetensors: weight"] != 0).any()
    for other, critic in found[:-1]:
        torch.testing.assert_close(other, policy, rtol=0, atol=1e-5)
        for name, value in wanted.items():
            torch.testing.assert_close(critic[name], value, rtol=1e-3, atol=1e-5, msg=name)


@pytest.mark.parametrize("kind", ["model", "head"])
def test_rewards_rise_with_one_sample_a_problem(tiny_checkpoint: Path, tmp_path: Path, kind: str) -> None:
    """Where the answer is always 3 the model finds that out, and its critic what the answer is worth."""
    prompts = [problem.prompt[-1].content for problem in make_problems(200, seed=0, steps=(2, 2))]
    data = write_lines(tmp_path / "threes.jsonl", [{"prompt": text, "answer": "3"} for text in prompts])
    _, records = train(
        tiny_checkpoint,
        tmp_path,
        data=Problems(source=str(data)),
        steps=12,
        prompts_per_step=96,
        samples_per_prompt=1,
        updates_per_step=4,
        **ppo(kind),
    )
    scores = [record["critic/score/mean"] for record in records]
    assert max(scores[:2]) < 0.3 and min(scores[-3:]) > 0.5
    values = [record["critic/values/mean"] for record in records]
    assert values[0] == 0 and values[-1] > 0.5
    assert not any("groups/useful" in record for record in records)  # nor an alarm that none is


def test_several_passes_are_several_times_the_updates_over_the_same_parts(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    warming = ppo(optimizer=Optimizer(lr=6e-4, warmup=6))
    _, (record,) = train(tiny_checkpoint, tmp_path, steps=1, updates_per_step=6, passes_per_step=3, **warming)
    assert record["actor/updates"] == 6 and abs(record["actor/ppo_kl"]) > 0
    assert record["critic/lr"] == pytest.approx(3.5e-4)  # the critic's six: 1 to 6 times 1e-4
