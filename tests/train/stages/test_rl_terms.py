"""Reinforcement with several rewards: what a run logs of each, and what it learns from."""

from __future__ import annotations

import textwrap
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from small_runs import train, weights
from tiny_world import HELD_OUT, rl_recipe

from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.reward import Reward, Term
from foresail.runlog.directory import RunDirectory

FUNCTIONS = r"""
def longest(completions, log_extra=None, **kwargs):
    lengths = [len(text) for text in completions]
    assert len(lengths) in (1, 8)  # a greedy answer to a held-out problem, or the whole group
    log_extra("characters", lengths)
    return [float(length == max(lengths)) for length in lengths]

def box(response, answer):
    return {"score": float("boxed" in response), "closed": "}" in response}
"""


@pytest.fixture(scope="module")
def functions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rewards") / "two_rewards.py"
    path.write_text(textwrap.dedent(FUNCTIONS))
    return path


def terms(path: Path) -> tuple[Term, ...]:
    return (
        Term(grader=f"{path}:longest", weight=0.5),
        Term(grader=f"{path}:box", weight=-0.25, name="form"),
    )


def read(run: Path, step: int) -> list[dict[str, Any]]:
    return list(RunDirectory(run).read_rollouts(step))


def test_terms_are_learned_from_and_logged_alike_in_one_process_and_in_others(
    tiny_checkpoint: Path, tmp_path: Path, functions: Path
) -> None:
    found = {}
    for workers in (0, 2):
        reward = Reward(workers=workers, terms=terms(functions))
        found[workers] = train(tiny_checkpoint, tmp_path / str(workers), steps=2, reward=reward)
    outcome, records = found[0]
    assert torch.equal(weights(outcome.checkpoint), weights(found[2][0].checkpoint))
    for record in records:
        rows = read(outcome.run, record["step"])
        for row in rows:
            assert set(row["terms"]) == {"longest", "form"}
            assert row["reward"] == pytest.approx(
                row["score"] + 0.5 * row["terms"]["longest"] - 0.25 * row["terms"]["form"]
            )
            assert row["extra"]["characters"] == len(row["response"])
        for name in ("longest", "form"):
            mean = fmean(row["terms"][name] for row in rows)
            assert record[f"reward/{name}/mean"] == pytest.approx(mean)
        assert record["reward/closed/mean"] == pytest.approx(fmean("}" in row["response"] for row in rows))
        assert record["rollout/accuracy"] == pytest.approx(fmean(row["status"] == "correct" for row in rows))


def test_terms_alone_are_a_reward_and_nothing_is_right_or_wrong(
    tiny_checkpoint: Path, tmp_path: Path, functions: Path
) -> None:
    reward = Reward(grader="none", workers=0, terms=terms(functions))
    held_out = {"eval": Problems(source=HELD_OUT), "eval_every": 1}
    outcome, (record,) = train(tiny_checkpoint, tmp_path, steps=1, reward=reward, **held_out)
    names = {"rollout/accuracy", "critic/score/mean", "groups/solved", "verdict/correct", "verdict/wrong"}
    assert not names & record.keys() and "response_length/correct/mean" not in record
    assert record["verdict/scored"] == 1.0 and record["groups/useful"] > 0
    rows = read(outcome.run, 1)
    assert {row["status"] for row in rows} == {"scored"}
    assert 0 < record["val-core/arithmetic/reward/mean@1"] <= 0.5  # alone, each is the longest
    assert "val-core/arithmetic/acc/mean@1" not in record
    assert record["rollout/reward"] == pytest.approx(fmean(row["reward"] for row in rows))


def test_a_recipe_without_terms_logs_no_names_of_theirs(tiny_checkpoint: Path, tmp_path: Path) -> None:
    recipe = rl_recipe(tiny_checkpoint, tmp_path, steps=1)
    assert recipe.reward.terms == ()
    outcome, (record,) = train(tiny_checkpoint, tmp_path, steps=1)
    assert not [name for name in record if name.startswith("reward/")] and "verdict/scored" not in record
    assert all("terms" not in row and "extra" not in row for row in read(outcome.run, 1))
