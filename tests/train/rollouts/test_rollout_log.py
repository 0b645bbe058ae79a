"""What a run tells while it goes on: how engine and trainer agree, groups, lengths, alarms, samples."""

from __future__ import annotations

import shutil
from concurrent.futures import Future
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from small_runs import train
from tiny_world import HELD_OUT, MAX_NEW, rl_recipe

from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Checkpoints, Sampling
from foresail.recipe.tables.policy_loss import Loss
from foresail.recipe.tables.reward import Reward
from foresail.recipe.tables.sources import HeldOut
from foresail.records import Verdict
from foresail.runlog.directory import RunDirectory
from foresail.runlog.display import Display
from foresail.runlog.summary import summarize
from foresail.train.stages.rl import run_rl

# fails for three of ten answers
FAILING = """
def score(prompts, completions, answer, **kwargs):
    if answer[0] in "147":
        raise KeyError("x")
    return [float(completion.strip() == r"\\boxed{%s}" % answer[0]) for completion in completions]
"""


@pytest.fixture(scope="module")
def watched(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    outcome, _ = train(
        tiny_checkpoint,
        tmp_path_factory.mktemp("watched"),
        steps=3,
        updates_per_step=2,
        micro_batch_tokens=64,
    )
    return RunDirectory(outcome.run)


def steps_of(run: RunDirectory) -> list[dict[str, Any]]:
    return [record for record in run.read_metrics() if record["step"]]


def test_engine_and_trainer_agree_at_every_step(watched: RunDirectory) -> None:
    """float32 on a CPU: no token of any step is further off than 1e-5."""
    records = steps_of(watched)
    for record in records:
        assert 0 <= record["rollout/logprob_abs_diff"] <= record["rollout/logprob_abs_diff_max"] < 1e-5
        assert 0 <= record["rollout/logprob_kl"] < 1e-5
    assert any(record["rollout/logprob_abs_diff"] > 0 for record in records)  # it was measured


def test_the_largest_difference_is_no_sum_over_micro_batches(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """Under top-p the engine's distribution is another one, so that the difference is far above rounding."""
    found = []
    for tokens in (20, 2000):
        _, (record,) = train(
            tiny_checkpoint,
            tmp_path / str(tokens),
            steps=1,
            micro_batch_tokens=tokens,
            sampling=Sampling(max_new_tokens=MAX_NEW, top_p=0.7),
            loss=Loss(old_logprobs="trainer"),
        )
        found.append(record["rollout/logprob_abs_diff_max"])
    assert found[0] == pytest.approx(found[1], abs=1e-5)
    # a token that was kept got likelier by what was cut off, at most three tenths
    assert 0.01 < found[0] < 0.36


def test_groups_and_lengths_follow_from_the_rollouts_on_disk(watched: RunDirectory) -> None:
    for record in steps_of(watched):
        rows = watched.read_rollouts(record["step"])
        rates = [
            fmean(row["status"] == "correct" for row in group) for _, group in groupby(rows, key=problem_of)
        ]
        assert record["groups/solved"] == pytest.approx(fmean(rate == 1 for rate in rates))
        assert record["groups/unsolved"] == pytest.approx(fmean(rate == 0 for rate in rates))
        assert record["groups/useful"] == pytest.approx(fmean(0 < rate < 1 for rate in rates))
        assert record["rollout/reward"] == pytest.approx(fmean(row["reward"] for row in rows))
        for name, wanted in (("correct", True), ("wrong", False)):
            lengths = [sum(row["loss_mask"]) for row in rows if (row["status"] == "correct") == wanted]
            assert record[f"response_length/{name}/mean"] == pytest.approx(fmean(lengths))
        sides = record["actor/pg_clipfrac_above"] + record["actor/pg_clipfrac_below"]
        assert record["actor/pg_clipfrac"] == pytest.approx(sides)


def problem_of(row: dict[str, Any]) -> str:
    return row["problem"]


def test_a_length_without_samples_is_left_out(tiny_checkpoint: Path, tmp_path: Path) -> None:
    """With one token nothing can be right."""
    _, (record,) = train(
        tiny_checkpoint,
        tmp_path,
        steps=1,
        sampling=Sampling(max_new_tokens=1),
        dynamic_sampling=DynamicSampling(enabled=False),
    )
    assert "response_length/correct/mean" not in record
    assert record["response_length/wrong/mean"] == 1
    assert record["groups/unsolved"] == 1


def test_an_alarm_is_shown_logged_and_not_raised_twice(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    recipe = rl_recipe(
        tiny_checkpoint,
        tmp_path,
        steps=3,
        reward=Reward(grader=f"{tmp_path}/failing.py:score", workers=0),
        checkpoints=Checkpoints(every=1, keep=3, resumable=3),
    )
    run = RunDirectory(run_rl(recipe).run)
    out = capsys.readouterr().out
    assert out.count("alarm in step 1, failed verdicts: ") == 1 == out.count("failed verdicts")
    assert "crashed: KeyError: 'x'" in out
    assert [record["alarms/standing"] for record in steps_of(run)] == [1, 1, 1]
    (event,) = (event for event in run.read_timeline() if event["what"] == "alarm")
    assert (event["step"], event["name"]) == (1, "failed verdicts")
    (alarm,) = summarize(run.path)["alarms"]
    assert (alarm["step"], alarm["standing"]) == (1, True) and alarm["text"] == event["text"]

    for step in (2, 3):  # as if the run had been killed after its first step
        shutil.rmtree(run.checkpoint_path(step))
    run_rl(recipe, resume=True)
    assert [record["alarms/standing"] for record in steps_of(run)] == [1, 1, 1]
    assert "failed verdicts" not in capsys.readouterr().out


@pytest.mark.parametrize(("every", "shown"), [(0, []), (1, [1, 2, 3]), (2, [1, 2]), (10, [1])])
def test_samples_are_shown_now_and_then(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], every: int, shown: list[int]
) -> None:
    run_rl(rl_recipe(tiny_checkpoint, tmp_path, steps=3, show_samples=every))
    out = capsys.readouterr().out
    assert [step for step in range(1, 4) if f"sample of step {step}: right" in out] == shown
    assert out.count("  response  ") == 2 * len(shown)


def test_answers_to_held_out_problems_are_counted_as_they_end(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over all sets, before the first step and after it: 20 greedy answers and 3 to each of 4 problems."""
    seen: list[str] = []

    def advance(display: Display, verdict: Future[Verdict] | None = None) -> None:
        display.phase.advance(verdict)
        seen.append(str(display.phase))

    monkeypatch.setattr(Display, "advance", advance)
    sets = (
        HeldOut(source=HELD_OUT),
        HeldOut(source="arithmetic:count=4,steps=2,split=test", name="four", samples=3),
    )
    run_rl(rl_recipe(tiny_checkpoint, tmp_path, steps=1, eval=sets, eval_every=1))
    counted = [words for words in seen if words.startswith("evaluation")]
    assert counted == 2 * [f"evaluation {done}/32" for done in range(1, 33)]
