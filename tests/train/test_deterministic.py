"""`run.deterministic`: two runs on one machine are equal bit for bit, however late verdicts come."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch
from random_delays import drawn, steady_metrics, wide_shape, write_slow_grader
from small_runs import weights
from tiny_world import rl_recipe, sft_recipe

from foresail.model.determinism import deterministic
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Engine, Model, Run, Sampling
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.reward import Reward
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.session import Outcome
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft


def train(tokenizer: Path, root: Path, *, wanted: bool = True, **changes: Any) -> Outcome:
    """Two steps with dynamic sampling and a few rows at a time, so that verdicts decide what runs together."""
    root.mkdir(exist_ok=True)
    given: dict[str, Any] = {
        "run": Run(name="rl", root=str(root), device="cpu", deterministic=wanted),
        "model": Model(
            shape=wide_shape(Tokenizer.load(tokenizer).vocab_size), tokenizer=str(tokenizer), dtype="float32"
        ),
        "reward": Reward(grader=write_slow_grader(root, seed=root.name), workers=3),
        "steps": 2,
        "engine": Engine(max_running=32, page_size=4),
    }
    return run_rl(rl_recipe(tokenizer, root, **given | changes))


@pytest.mark.usefixtures("forked_workers")
@pytest.mark.parametrize(
    "rollout",
    [
        pytest.param({}, id="plain"),
        pytest.param({"drafts": "on", "chunk_tokens": 3}, id="drafts"),
        pytest.param({"workers": 2}, id="workers", marks=pytest.mark.slow),
    ],
)
def test_equal_bit_for_bit(tiny_tokenizer: Path, tmp_path: Path, rollout: dict[str, Any]) -> None:
    one, other = (train(tiny_tokenizer, tmp_path / name, rollout=rollout) for name in ("one", "other"))
    assert drawn(one.run) == drawn(other.run)
    assert steady_metrics(one.run) == steady_metrics(other.run)
    assert torch.equal(weights(one.checkpoint), weights(other.checkpoint))


def test_fine_tuning_too(tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path) -> None:
    found = []
    for name in ("one", "other"):
        run = Run(name=name, root=str(tmp_path), device="cpu", deterministic=True)
        outcome = run_sft(sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path, run=run, steps=5))
        found.append((weights(outcome.checkpoint), steady_metrics(outcome.run)))
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def test_the_engine_is_batch_invariant_and_nothing_else_changes(tmp_path: Path) -> None:
    plain = rl_recipe(tmp_path, tmp_path)
    steady = rl_recipe(tmp_path, tmp_path, run=Run(deterministic=True))
    assert not plain.engine_settings.batch_invariant
    assert steady.engine_settings == plain.engine_settings.model_copy(update={"batch_invariant": True})


def test_what_depends_on_the_clock_is_refused(tmp_path: Path) -> None:
    carry = {"dynamic_sampling": DynamicSampling(carry=True)}
    with pytest.raises(ValueError, match=r"machine's speed.* set dynamic_sampling\.carry = false"):
        rl_recipe(tmp_path, tmp_path, run=Run(deterministic=True), **carry)
    assert rl_recipe(tmp_path, tmp_path, run=Run(), **carry).dynamic_sampling.carry

    cut = {"sampling": Sampling(max_new_tokens=8, top_p=0.9), "loss": Loss(old_logprobs="trainer")}
    with pytest.raises(ValueError, match=r"in no fixed order on a GPU.* or set run\.device = \"cpu\""):
        rl_recipe(tmp_path, tmp_path, run=Run(deterministic=True), **cut)
    assert rl_recipe(tmp_path, tmp_path, run=Run(deterministic=True, device="cpu"), **cut)


def test_pytorch_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)

    def fail() -> None:
        with deterministic():
            assert torch.are_deterministic_algorithms_enabled()
            assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not torch.are_deterministic_algorithms_enabled()
    with deterministic(False):
        assert not torch.are_deterministic_algorithms_enabled()
