"""Verdicts in a run: what cannot be graded, what is solved, and what stops it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from small_runs import train
from tiny_world import rl_recipe

from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Checkpoints
from foresail.recipe.tables.reward import Reward
from foresail.records import Problem, RunStopped, Status, Verdict
from foresail.rewards import grader
from foresail.rollout.collect import NoSignal
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.rollouts.run import NothingToLearn
from foresail.train.stages.rl import run_rl


def always_after(count: int, status: Status) -> Callable[[Problem], Status | None]:
    """The first so many are judged as they are."""
    calls = itertools.count()
    return lambda problem: status if next(calls) >= count else None


def grade_by(monkeypatch: pytest.MonkeyPatch, status_of: Any) -> None:
    """Let `status_of(problem)` overrule the grader; None leaves its verdict."""

    def grade(problem: Problem, response: str, **options: Any) -> Verdict:
        status = status_of(problem)
        if status is None:
            return plain(problem, response, **options)
        return Verdict(status=status, score=float(status == "correct"))

    plain = grader.grade_maths
    monkeypatch.setattr(grader, "grade_maths", grade)


@pytest.mark.parametrize("enabled", [True, False])
def test_groups_that_cannot_be_graded_are_dropped(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> None:
    def fails(problem: Problem) -> bool:
        return problem.id.endswith(("1", "2", "3", "4"))

    grade_by(monkeypatch, lambda problem: "crashed" if fails(problem) else None)
    outcome, records = train(tiny_checkpoint, tmp_path, dynamic_sampling=DynamicSampling(enabled=enabled))
    assert sum(record["rollout/groups_failed"] for record in records) > 0
    for record in records:
        rows = RunDirectory(outcome.run).read_rollouts(record["step"])
        failed = [row for row in rows if row["status"] == "crashed"]
        assert len(failed) == 8 * record["rollout/groups_failed"]
        assert all(row["reward"] is None and not row["used"] for row in failed)
        # the score is that of the judged: a failure is never a zero
        judged = [row["score"] for row in rows if row["status"] != "crashed"]
        assert record["critic/score/mean"] == pytest.approx(fmean(judged))


def test_one_failed_verdict_drops_its_whole_group(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []

    def first_of_each_third_problem(problem: Problem) -> Status | None:
        calls.append(problem.id)
        return "timeout" if calls.count(problem.id) == 1 and len(set(calls)) % 3 == 0 else None

    grade_by(monkeypatch, first_of_each_third_problem)
    outcome, (record,) = train(tiny_checkpoint, tmp_path, steps=1)
    rows = RunDirectory(outcome.run).read_rollouts(1)
    broken = {row["problem"] for row in rows if row["status"] == "timeout"}
    assert len(broken) == record["rollout/groups_failed"] > 0
    assert all(not row["used"] for row in rows if row["problem"] in broken)


def test_nothing_gradable_stops_the_run(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade_by(monkeypatch, lambda problem: "crashed")
    with pytest.raises(NoSignal, match=r"every verdict of the step failed: 192 of 192 \(crashed 192\)"):
        run_rl(rl_recipe(tiny_checkpoint, tmp_path))
    assert len(list(RunDirectory(tmp_path / "rl").read_rollouts(1))) == 192  # to be looked at


def test_a_grader_that_raises_is_not_a_score(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(problem: Problem, response: str, **options: Any) -> Verdict:
        raise KeyError("a bug in the grader")

    monkeypatch.setattr(grader, "grade_maths", broken)
    with pytest.raises(RunStopped, match="the first: crashed: KeyError: 'a bug in the grader'"):
        run_rl(rl_recipe(tiny_checkpoint, tmp_path))


def test_many_failures_are_told_of_and_few_are_not(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[str] = []

    def first_call(problem: Problem) -> Status | None:
        calls.append(problem.id)
        return "timeout" if len(calls) == 1 else None

    def third_of_the_problems(problem: Problem) -> Status | None:
        return "timeout" if problem.answer in ("1", "4", "7") else None

    for rule, loud in ((first_call, False), (third_of_the_problems, True)):
        with monkeypatch.context() as patch:
            grade_by(patch, rule)
            _, (record,) = train(tiny_checkpoint, tmp_path / rule.__name__, steps=1)
        assert record["verdict/timeout"] > 0
        assert (record["verdict/timeout"] > 0.1) is loud
        assert ("alarm in step 1, failed verdicts: " in capsys.readouterr().out) is loud


def test_equal_rewards_for_the_whole_cap_stop_the_run(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade_by(monkeypatch, lambda problem: "correct" if int(problem.answer) % 2 else "wrong")
    with pytest.raises(NoSignal) as stopped:
        run_rl(rl_recipe(tiny_checkpoint, tmp_path, dynamic_sampling=DynamicSampling(max_rounds=2)))
    message = str(stopped.value)
    assert "12 groups of 8 samples" in message
    assert "0/8 right: " in message and "8/8 right: " in message
    assert "max_rounds" in message and "easier problems" in message


def test_a_grader_that_accepts_anything_is_told_of_and_the_folder_stays_free(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = rl_recipe(tiny_checkpoint, tmp_path, steps=2)
    with monkeypatch.context() as patch:
        grade_by(patch, lambda problem: "correct")
        with pytest.raises(
            NothingToLearn, match="every answer of step 1 is right, and nothing was learned yet"
        ):
            run_rl(recipe)
    assert RunDirectory(tmp_path / "rl").read_rollouts(1)  # to be looked at
    assert run_rl(recipe).finished


def test_without_a_signal_what_was_learned_is_kept(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade_by(monkeypatch, always_after(300, "wrong"))
    recipe = rl_recipe(tiny_checkpoint, tmp_path, steps=50, checkpoints=Checkpoints(every=50))
    with pytest.raises(NoSignal):
        run_rl(recipe)
    run = RunDirectory(tmp_path / "rl")
    done = run.read_metrics()[-1]["step"]
    assert done > 0 and run.checkpoint_steps() == [done]


def test_what_stopped_a_run_is_said_though_its_samples_cannot_be_written(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(RunDirectory, "write_rollouts", full)
    grade_by(monkeypatch, lambda problem: "crashed")
    with pytest.raises(NoSignal, match="every verdict of the step failed"):
        run_rl(rl_recipe(tiny_checkpoint, tmp_path))
    assert "samples were not written: no room" in capsys.readouterr().out


def test_solved_problems_end_the_run_early_and_for_good(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade_by(monkeypatch, always_after(300, "correct"))
    recipe = rl_recipe(tiny_checkpoint, tmp_path, steps=50)
    outcome = run_rl(recipe)
    assert outcome.finished and read_progress(outcome.checkpoint).finished
    again = run_rl(recipe, resume=True)
    assert again == outcome


def test_solved_later_keeps_what_was_learned(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grade_by(monkeypatch, always_after(300, "correct"))
    outcome, records = train(tiny_checkpoint, tmp_path, steps=50)
    assert outcome.finished and 0 < len(records) < 50
    assert outcome.checkpoint.name == f"step_{records[-1]['step']}"


def test_wrong_answers_may_cost_and_long_ones_too(tiny_checkpoint: Path, tmp_path: Path) -> None:
    reward = Reward(wrong=-1.0, overlong_buffer=6, overlong_factor=0.5)
    outcome, _ = train(tiny_checkpoint, tmp_path, steps=1, reward=reward)
    for row in RunDirectory(outcome.run).read_rollouts(1):
        length = sum(row["loss_mask"])
        expected = (1.0 if row["status"] == "correct" else -1.0) - 0.5 * min(max((length - 2) / 6, 0), 1)
        assert row["reward"] == pytest.approx(expected)
