"""Runs on several sources: who grades what, what is logged by source, several held-out sets, epochs, going on."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import train, weights
from tiny_world import HELD_OUT, PROBLEMS, rl_recipe, sft_recipe, write_lines

from foresail.data.made.arithmetic import make_problems
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.reward import Reward
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.session import Outcome
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

OFF = DynamicSampling(enabled=False)
LONG = "7" + " +5" * 20


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Twelve problems of another seed, and one that is too long."""
    problems = make_problems(12, seed=9, steps=(2, 2))
    rows = [{"prompt": p.prompt[-1].content, "answer": p.answer} for p in problems]
    return write_lines(tmp_path / "other.jsonl", [*rows, {"prompt": LONG, "answer": "1"}])


@pytest.fixture
def contrary(tmp_path: Path) -> str:
    """Pays a wrong answer, and right ones nothing."""
    file = tmp_path / "contrary.py"
    file.write_text(
        "def score(data_source, solution_str, ground_truth, extra_info=None):\n"
        "    return 0.25 * (ground_truth not in solution_str)\n"
    )
    return f"{file}:score"


def rows_of(outcome: Outcome, step: int) -> list[dict[str, Any]]:
    return RunDirectory(outcome.run).read_rollouts(step)


def test_each_source_has_its_grader_and_its_curves(
    tiny_checkpoint: Path, tmp_path: Path, other: Path, contrary: str, capsys: pytest.CaptureFixture[str]
) -> None:
    data = [
        {"source": PROBLEMS, "weight": 1.0},
        {"source": str(other), "weight": 2.0, "grader": contrary, "too_long": "drop"},
    ]
    reward = Reward(wrong=-1.0, workers=0)
    outcome, records = train(tiny_checkpoint, tmp_path, data=data, reward=reward, dynamic_sampling=OFF)
    assert "dropped as longer than max_prompt_tokens 12: 1 of other" in capsys.readouterr().out
    for record in records:
        rows = rows_of(outcome, record["step"])
        own = [row for row in rows if row["problem"].startswith("other:")]
        built_in = [row for row in rows if not row["problem"].startswith("other:")]
        assert {row["reward"] for row in built_in} <= {-1.0, 1.0} and {row["reward"] for row in own} <= {
            0.0,
            0.25,
        }
        assert record["rollout/launched/arithmetic"] == len(built_in) / 8
        assert record["rollout/launched/other"] == len(own) / 8
        for name, of_source in (("arithmetic", built_in), ("other", own)):
            if of_source:
                right = sum(row["status"] == "correct" for row in of_source) / len(of_source)
                assert record[f"rollout/accuracy/{name}"] == pytest.approx(right)
        assert record["data/dropped"] == 1
    assert set(read_progress(outcome.checkpoint).places) == {"arithmetic", "other"}


def test_a_mixture_goes_on_after_a_stop_as_if_there_had_been_none(
    tiny_checkpoint: Path, tmp_path: Path, other: Path
) -> None:
    data = [
        {"source": PROBLEMS, "weight": 1.0},
        {"source": str(other), "weight": 1.0, "epochs": 1, "too_long": "drop"},
    ]
    changes = {"data": data, "steps": 4, "dynamic_sampling": DynamicSampling(easy_pool=0.2)}
    whole, _ = train(tiny_checkpoint, tmp_path / "whole", **changes)
    folder = tmp_path / "cut" / "rl"
    shutil.copytree(whole.run, folder)
    for step in RunDirectory(folder).checkpoint_steps():
        if step > 3:
            shutil.rmtree(RunDirectory(folder).checkpoint_path(step))
    again = run_rl(rl_recipe(tiny_checkpoint, tmp_path / "cut", **changes), resume=True)
    assert torch.equal(weights(whole.checkpoint), weights(again.checkpoint))
    assert read_progress(whole.checkpoint) == read_progress(again.checkpoint)
    assert [row["problem"] for row in rows_of(whole, 4)] == [row["problem"] for row in rows_of(again, 4)]


def test_one_source_logs_nothing_by_source(tiny_checkpoint: Path, tmp_path: Path) -> None:
    _, records = train(tiny_checkpoint, tmp_path, steps=1)
    assert not [name for name in records[0] if name.startswith(("rollout/launched/", "data/"))]


def test_a_run_ends_with_its_epochs(tiny_checkpoint: Path, tmp_path: Path, other: Path) -> None:
    data = {"source": str(other), "epochs": 2, "too_long": "drop"}
    outcome, records = train(tiny_checkpoint, tmp_path, data=data, steps=9, dynamic_sampling=OFF)
    assert outcome.finished and [record["step"] for record in records] == [
        1,
        2,
        3,
        4,
    ]  # 2 passes over 12, by 6
    assert read_progress(outcome.checkpoint).position == 24


def test_held_out_sets_are_measured_each_in_its_own_way(
    tiny_checkpoint: Path, tmp_path: Path, other: Path, contrary: str
) -> None:
    sets = [
        {"source": HELD_OUT},
        {"source": HELD_OUT, "name": "drawn", "samples": 3, "limit": 5},
        {"source": str(other), "name": "contrary", "grader": contrary, "limit": 12},
    ]
    changes: dict[str, Any] = {"eval": sets, "eval_every": 1, "steps": 1, "reward": Reward(workers=0)}
    outcome, _ = train(tiny_checkpoint, tmp_path, **changes)
    zero, one = RunDirectory(outcome.run).read_metrics()
    names = {
        "val-core/arithmetic/acc/mean@1", "val-core/drawn/acc/mean@3", "val-core/contrary/acc/mean@1",
        "val-core/contrary/reward/mean@1",  # a function's scores are more than right or wrong
    }  # fmt: skip
    for record in (zero, one):
        assert {name for name in record if name.startswith("val-core/")} == names
    assert round(15 * zero["val-core/drawn/acc/mean@3"], 6) % 1 == 0
    assert zero["val-core/contrary/acc/mean@1"] == 0  # its scores never reach the threshold of 1
    alone, _ = train(tiny_checkpoint, tmp_path / "alone", **changes | {"eval": sets[0]})
    first = RunDirectory(alone.run).read_metrics()[0]
    assert first["val-core/arithmetic/acc/mean@1"] == zero["val-core/arithmetic/acc/mean@1"]


def test_two_sets_of_one_source_need_names(tiny_checkpoint: Path, tmp_path: Path) -> None:
    rows = [{"prompt": "7 +5", "answer": "2", "data_source": "mine"}]
    sets = [{"source": str(write_lines(tmp_path / f"{name}.jsonl", rows))} for name in "ab"]
    with pytest.raises(
        ValueError, match=r"a.jsonl and .*b.jsonl both have problems of mine; give each \[\[eval"
    ):
        run_rl(rl_recipe(tiny_checkpoint, tmp_path, eval=sets, eval_every=1))


# Supervised.


def test_sft_draws_from_a_mixture_and_counts_its_tokens(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    alpaca = [{"instruction": "7 +5", "input": "", "output": "2"}, {"instruction": LONG, "output": "1"}]
    few = write_lines(tmp_path / "few.jsonl", alpaca)
    data = [
        {"source": str(tiny_conversations), "weight": 3.0, "limit": 50},
        {"source": str(few), "weight": 1.0, "epochs": 9, "too_long": "drop"},
    ]
    recipe = sft_recipe(tiny_tokenizer, data, tmp_path, steps=3)
    outcome = run_sft(recipe)
    records = RunDirectory(outcome.run).read_metrics()
    assert len(records) == 3
    for record in records:
        assert record["train/tokens/sft"] + record["train/tokens/few"] == record["train/tokens"]
        assert record["data/dropped"] == 1
    progress = read_progress(outcome.checkpoint)
    assert progress.places["few"] == 9 and sum(progress.places.values()) == progress.position == 96


def test_sft_ends_with_its_epochs(tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path) -> None:
    data = {"source": str(tiny_conversations), "limit": 40, "epochs": 2}
    outcome = run_sft(sft_recipe(tiny_tokenizer, data, tmp_path, steps=9))
    assert outcome.finished and len(RunDirectory(outcome.run).read_metrics()) == 2  # 80 conversations, by 32
