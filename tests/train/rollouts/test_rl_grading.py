"""Reinforcement with reward functions of one's own, graded in other processes."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_world import HELD_OUT, MAX_NEW, rl_recipe

from foresail.data.problems.problems import load_problems
from foresail.evaluation.evaluator import evaluate_checkpoint
from foresail.evaluation.results import summarise
from foresail.model.hf import load_model
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Problems, Sampling
from foresail.recipe.tables.reward import Reward
from foresail.records import RunStopped
from foresail.runlog.directory import RunDirectory
from foresail.train.stages.rl import run_rl

# The same verdicts as the grader `exact` on `\boxed{7}`, by hand, after waits.
SLOW = r"""
import random, time
def score(completions, answer, completion_ids, **kwargs):
    time.sleep(random.Random(str(completions)).random() / 200)
    assert len(completion_ids[0]) >= 1
    return [float(completion.strip() == r"\boxed{%s}" % gold) for completion, gold in zip(completions, answer)]
"""


def write_function(folder: Path, text: str) -> str:
    (folder / "my_rewards.py").write_text(textwrap.dedent(text))
    return f"{folder}/my_rewards.py:score"


def weights(checkpoint: Path) -> torch.Tensor:
    model = load_model(checkpoint, dtype=torch.float32, device=torch.device("cpu"))
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def train(checkpoint: Path, folder: Path, **changes: Any) -> tuple[Path, list[dict[str, Any]]]:
    outcome = run_rl(rl_recipe(checkpoint, folder, **changes))
    assert outcome.finished
    return outcome.checkpoint, [
        record for record in RunDirectory(outcome.run).read_metrics() if record["step"]
    ]


def test_training_does_not_depend_on_when_verdicts_come(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """One process or three, in any order: the same weights to the last bit."""
    name = write_function(tmp_path, SLOW)
    found = [
        train(tiny_checkpoint, tmp_path / str(workers), reward=Reward(grader=name, workers=workers))
        for workers in (0, 3)
    ]
    assert torch.equal(weights(found[0][0]), weights(found[1][0]))
    assert not torch.equal(weights(found[0][0]), weights(tiny_checkpoint))
    for one, other in zip(found[0][1], found[1][1], strict=True):
        assert one["critic/score/mean"] == other["critic/score/mean"]


def test_scores_are_rewards_as_they_are(tiny_checkpoint: Path, tmp_path: Path) -> None:
    name = write_function(
        tmp_path,
        """
        def score(data_source, solution_str, ground_truth, extra_info=None):
            return {"score": len(solution_str) - 9.5, "acc": ground_truth in solution_str}
        """,
    )
    reward = Reward(grader=name, workers=1, format_weight=0.25)
    checkpoint, (record,) = train(
        tiny_checkpoint, tmp_path, steps=1, reward=reward, eval=Problems(source=HELD_OUT), eval_every=1
    )
    rows = list(RunDirectory(checkpoint.parents[1]).read_rollouts(1))
    assert rows
    for row in rows:
        assert row["score"] == len(row["response"]) - 9.5
        assert row["reward"] == row["score"] - 0.25  # nothing here thinks
        assert (row["status"] == "correct") == (row["answer"] in row["response"])
    assert 0 <= record["val-core/arithmetic/acc/mean@1"] <= 1  # right answers, not rewards


def test_a_function_that_always_fails_stops_the_run_with_its_error(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    name = write_function(tmp_path, "def score(completions, **kwargs): return [kwargs['gold'][0]]")
    recipe = rl_recipe(
        tiny_checkpoint,
        tmp_path,
        reward=Reward(grader=name, workers=1),
        dynamic_sampling=DynamicSampling(max_rounds=1),
    )
    with pytest.raises(
        RunStopped, match=r"48 of 48 .*the first: crashed: KeyError: 'gold' \(my_rewards.py:1\)"
    ):
        run_rl(recipe)


def test_a_function_that_cannot_be_loaded_leaves_no_run_behind(tiny_checkpoint: Path, tmp_path: Path) -> None:
    name = write_function(tmp_path, "def score(response): return 1.0")
    with pytest.raises(ValueError, match="known shapes"):
        run_rl(rl_recipe(tiny_checkpoint, tmp_path, reward=Reward(grader=name)))
    assert not (tmp_path / "rl").exists()


def test_what_a_function_does_not_apply_to_is_dropped_and_counted(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    name = write_function(
        tmp_path,
        """
        def score(completions, answer, **kwargs):
            return [None if int(gold) % 2 else float(len(text)) for text, gold in zip(completions, answer)]
        """,
    )
    checkpoint, records = train(tiny_checkpoint, tmp_path, reward=Reward(grader=name, workers=1))
    for record in records:
        rows = list(RunDirectory(checkpoint.parents[1]).read_rollouts(record["step"]))
        dropped = {row["problem"] for row in rows if int(row["answer"]) % 2}
        assert record["rollout/groups_failed"] == len(dropped) > 0
        assert record["verdict/ungradable"] == pytest.approx(8 * len(dropped) / len(rows))
        assert all(row["reward"] is None and not row["used"] for row in rows if row["problem"] in dropped)


def test_an_evaluation_counts_what_a_function_calls_right(tiny_checkpoint: Path, tmp_path: Path) -> None:
    name = write_function(
        tmp_path,
        """
        def score(data_source, solution_str, ground_truth, extra_info=None):
            assert len(extra_info["completion_ids"]) > 0
            return {"score": -100.0, "acc": ground_truth in solution_str}
        """,
    )
    results = evaluate_checkpoint(
        tiny_checkpoint,
        Problems(source=HELD_OUT),
        Sampling(max_new_tokens=MAX_NEW),
        num_samples=4,
        output=tmp_path / "eval",
        grader=name,
    )
    answers = {problem.id: problem.answer for problem in load_problems(Problems(source=HELD_OUT))}
    for result in results:
        for attempt in (result.greedy, *result.samples):
            assert attempt is not None
            assert attempt.correct == (answers[result.problem_id] in attempt.text)
    figures = summarise(results)
    assert 0 <= figures["mean@4"]["low"] <= figures["mean@4"]["value"] <= 1
