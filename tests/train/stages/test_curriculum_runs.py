"""RL runs with a curriculum, an easy pool and a window: what each stage draws, and that a kill changes nothing."""

from __future__ import annotations

import random
import shutil
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from command_line import CommandLine
from run_ends import assert_same_end, last_step
from small_runs import train, weights
from tiny_world import MAX_NEW, PROBLEMS, rl_recipe, write_lines

from foresail.data.problems.problems import load_problems
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.reward import Reward
from foresail.runlog.directory import RunDirectory
from foresail.runlog.timeline import read_step
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.rollouts.run import NothingToLearn
from foresail.train.session import Outcome

POOLS = DynamicSampling(easy_pool=0.2, window=(0.05, 0.95), window_visits=2, window_return=0.3)
STAGES = [
    {"steps": 2, "mix": [3, 1, 0, 0, 0], "max_new_tokens": 5, "prompts_per_step": 4},
    {"steps": 2, "mix": [0, 0, 1, 1, 0], "temperature": 0.9},
    {},
]


@pytest.fixture(scope="module")
def levels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of every tenth problem nobody knows the level; the others have 1 to 5 in turns."""
    problems = load_problems(Problems(source=PROBLEMS))
    rows = [{"id": problem.id, "level": 1 + n % 5 if n % 10 else None} for n, problem in enumerate(problems)]
    return write_lines(tmp_path_factory.mktemp("levels") / "difficulty.jsonl", rows)


def curriculum(levels: Path, **changes: Any) -> dict[str, Any]:
    given: dict[str, Any] = {
        "data": Problems(source=PROBLEMS, difficulty=str(levels)),
        "steps": 6,
        "curriculum": STAGES,
        "dynamic_sampling": POOLS,
    }
    return given | changes


def rows_of(outcome: Outcome, step: int) -> list[dict[str, Any]]:
    return RunDirectory(outcome.run).read_rollouts(step)


def test_every_stage_draws_as_it_says(tiny_checkpoint: Path, tmp_path: Path, levels: Path):
    off = DynamicSampling(enabled=False)
    outcome, metrics = train(tiny_checkpoint, tmp_path, **curriculum(levels, dynamic_sampling=off))
    level_of = {
        problem.id: problem.level
        for problem in load_problems(Problems(source=PROBLEMS, difficulty=str(levels)))
    }
    assert [record["curriculum/stage"] for record in metrics] == [1, 1, 2, 2, 3, 3]
    # the trainer computes at the temperature that the stage drew with
    assert max(record["rollout/logprob_abs_diff"] for record in metrics) < 1e-5
    wanted = {1: ({1, 2}, 4, 5), 2: ({1, 2}, 4, 5), 3: ({3, 4}, 6, MAX_NEW), 4: ({3, 4}, 6, MAX_NEW)}
    for step, (allowed, num_prompts, longest) in wanted.items():
        rows = rows_of(outcome, step)
        assert {level_of[row["problem"]] for row in rows} <= allowed
        assert len({row["problem"] for row in rows}) == num_prompts
        assert max(sum(row["loss_mask"]) for row in rows) <= longest
    # without a mix the data's own order begins where it was left: at its beginning
    plain, _ = train(tiny_checkpoint, tmp_path / "plain", dynamic_sampling=off)
    assert [row["problem"] for row in rows_of(outcome, 5)] == [row["problem"] for row in rows_of(plain, 1)]
    progress = read_progress(outcome.checkpoint)
    assert progress.position == 12 and sum(progress.places.values()) == 2 * 4 + 2 * 6


def test_what_was_drawn_is_logged_by_level(tiny_checkpoint: Path, tmp_path: Path, levels: Path):
    outcome, metrics = train(tiny_checkpoint, tmp_path, **curriculum(levels))
    level_of = {
        problem.id: problem.level
        for problem in load_problems(Problems(source=PROBLEMS, difficulty=str(levels)))
    }
    solved, rates = set[str](), dict[str, list[float]]()
    for record in metrics:
        rows = rows_of(outcome, record["step"])
        right: dict[str, list[bool]] = {}
        for row in rows:
            right.setdefault(row["problem"], []).append(row["status"] == "correct")
        by_level = Counter(level_of[problem] for problem in right)
        for level in range(1, 6):
            share, accuracy = f"rollout/launched_level_{level}", f"rollout/accuracy_level_{level}"
            assert (share in record) == (accuracy in record) == (by_level[level] > 0)
            if by_level[level]:
                answers = [one for problem in right if level_of[problem] == level for one in right[problem]]
                assert record[share] == pytest.approx(by_level[level] / len(right))
                assert record[accuracy] == pytest.approx(sum(answers) / len(answers))
        for problem, answers in right.items():
            (solved.add if all(answers) else solved.discard)(problem)
            rates[problem] = [*rates.get(problem, []), sum(answers) / len(answers)][-2:]
        means = [sum(values) / len(values) for values in rates.values()]
        assert record["pool/easy"] == len(solved)
        assert record["pool/window_below"] == sum(mean < 0.05 for mean in means)
        assert record["pool/window_above"] == sum(mean > 0.95 for mean in means)
        assert record["pool/window_inside"] == sum(0.05 <= mean <= 0.95 for mean in means)
    progress = read_progress(outcome.checkpoint)
    assert progress.rates == rates and set(progress.easy) == solved
    assert {record["pool/window_below"] > 0 for record in metrics} == {True}, "a window that shuts nobody out"


def test_a_curriculum_that_changes_nothing_changes_nothing(tiny_checkpoint: Path, tmp_path: Path):
    plain, expected = train(tiny_checkpoint, tmp_path / "plain", steps=3)
    staged, found = train(tiny_checkpoint, tmp_path / "staged", steps=3, curriculum=[{"steps": 1}, {}])
    assert torch.equal(weights(plain.checkpoint), weights(staged.checkpoint))
    for step in (1, 2, 3):
        assert rows_of(plain, step) == rows_of(staged, step)
    new = {name for record in found for name in record} - {name for record in expected for name in record}
    assert new == {"curriculum/stage"}
    before, after = read_progress(plain.checkpoint), read_progress(staged.checkpoint)
    assert before == after and (before.places, before.rates, before.ahead) == ({}, {}, 0)


def test_a_stage_that_is_solved_is_left_for_the_next(tiny_checkpoint: Path, tmp_path: Path):
    """Of level 1 every answer is right; without a next stage the run would end there."""
    rows = [
        {"id": f"p{n}", "prompt": f"{1 + n % 9} +{1 + n % 7} -2", "answer": str(n % 10), "level": 1 + n % 2}
        for n in range(40)
    ]
    data = write_lines(tmp_path / "data.jsonl", rows)
    (tmp_path / "rewards.py").write_text(
        "def easy(prompts, completions, level, **columns):\n"
        "    return [1.0 if one == 1 else float(ord(text[-2]) % 2)"
        " for one, text in zip(level, [c if isinstance(c, str) else c[0]['content'] for c in completions])]\n"
    )
    stages = [{"steps": 2, "mix": [1, 0, 0, 0, 0]}, {"mix": [0, 1, 0, 0, 0]}]
    given: dict[str, Any] = {
        "data": Problems(source=str(data), difficulty_key="level"),
        "steps": 4,
        "curriculum": stages,
        "reward": Reward(grader=f"{tmp_path / 'rewards.py'}:easy", workers=0),
    }
    outcome, metrics = train(tiny_checkpoint, tmp_path / "staged", **given)
    assert [record["curriculum/stage"] for record in metrics] == [2] * 4
    assert read_progress(outcome.checkpoint).ahead == 2
    first = read_step(RunDirectory(outcome.run).read_timeline(), 1)
    rollouts = [part for part in first.parts if part.name == "rollout"]
    assert len(rollouts) == len(first.closings) == 2, "the draw that ended the stage, and the step's own"
    assert min(chunk.start for chunk in first.chunks) >= 0
    # the same stage alone: there is nothing to begin with
    with pytest.raises(NothingToLearn):
        train(tiny_checkpoint, tmp_path / "alone", **given | {"curriculum": [stages[0] | {"steps": 4}]})


def test_levels_that_the_data_lacks_are_refused_at_the_start(
    tiny_checkpoint: Path, tmp_path: Path, levels: Path
):
    few = Problems(source=PROBLEMS, difficulty=str(levels), limit=8)
    with pytest.raises(
        ValueError, match=r"curriculum stage 1: mix draws from 3 problems and prompts_per_step is 4"
    ):
        train(tiny_checkpoint, tmp_path, **curriculum(levels, data=few))


def test_killed_at_random_moments_it_ends_the_same(
    foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path, levels: Path
):
    recipe = rl_recipe(tiny_checkpoint, tmp_path / "whole", **curriculum(levels))
    (tmp_path / "rl.toml").write_text(to_toml(recipe))
    finished = foresail.run("rl", "rl.toml")
    assert finished.code == 0, finished.err
    run, delays, kills = RunDirectory(tmp_path / "runs" / "rl"), random.Random(0), 0
    while kills < 6:  # in two runs, but on a busy machine one may get away before it is killed
        shutil.rmtree(run.path, ignore_errors=True)
        kills += kill_again_and_again(foresail, run, delays)
        assert_same_end(run.path, tmp_path / "whole" / "rl")
    progress = read_progress(run.checkpoint_path(6))
    assert progress.rates and progress.places and progress.position


def kill_again_and_again(foresail: CommandLine, run: RunDirectory, delays: random.Random) -> int:
    """How often it was killed before it came to its end."""
    kills = 0
    while True:
        words = ("resume", run.path) if run.exists() else ("rl", "rl.toml", "run.root=runs")
        running, reached = foresail.start(*words), last_step(run.path)
        if kills < 4:
            running.until(lambda reached=reached: last_step(run.path) > reached)  # type: ignore[misc]
            time.sleep(delays.uniform(0, 0.1))
            running.send(signal.SIGKILL)
        ended = running.wait()
        assert ended.code in (0, -signal.SIGKILL), ended.err
        if ended.code == 0:
            return kills
        kills += 1
