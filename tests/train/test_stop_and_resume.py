"""Runs that are stopped or killed, as real processes, end as if nothing had happened.

The measure is always an uninterrupted run of the same recipe: its weights and optimiser state bit for bit, and
its log line by line, but for the times in it.
"""

from __future__ import annotations

import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import CommandLine, Running
from run_ends import assert_same_end, last_step, without_times
from tiny_world import HELD_OUT, PROBLEMS, rl_recipe, sft_recipe

from foresail.api.stages import read_run
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.tables.parts import Checkpoints, Problems
from foresail.runlog.directory import RunDirectory
from foresail.train.stages.rl import run_rl

STEPS = 12


@pytest.fixture(scope="module")
def whole(
    tiny_checkpoint: Path,
    tiny_tokenizer: Path,
    tiny_conversations: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """Recipes for both stages, and an uninterrupted run of each."""
    folder = tmp_path_factory.mktemp("whole")
    every = Checkpoints(every=1, keep=2)
    held_out = Problems(source=HELD_OUT)
    rl = rl_recipe(
        tiny_checkpoint,
        folder,
        steps=STEPS,
        updates_per_step=2,
        eval=held_out,
        eval_every=6,
        checkpoints=every,
    )
    sft = sft_recipe(tiny_tokenizer, tiny_conversations, folder, steps=STEPS, checkpoints=every)
    foresail = CommandLine(folder)
    for recipe in (rl, sft):
        (folder / f"{recipe.stage}.toml").write_text(to_toml(recipe))
        finished = foresail.run(recipe.stage, f"{recipe.stage}.toml")
        assert finished.code == 0, finished.err
    return folder


def seconds_per_step(run: Path) -> float:
    """Saving included, which is half of it."""
    events = RunDirectory(run).read_timeline()
    return (events[-1]["end"] - events[0]["start"]) / STEPS


def begin(foresail: CommandLine, whole: Path, stage: str) -> Running:
    return foresail.start(stage, whole / f"{stage}.toml", "run.root=runs")


# Asked to stop.


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("stage", ["rl", "sft"])
def test_a_signal_ends_the_step_saves_and_tells_how_to_go_on(
    foresail: CommandLine, whole: Path, tmp_path: Path, number: signal.Signals, stage: str
) -> None:
    run = tmp_path / "runs" / stage
    running = begin(foresail, whole, stage)
    running.until(lambda: last_step(run) >= 3)
    running.send(number)
    stopped = running.wait()

    assert stopped.code == 0 and stopped.err == ""
    reached = last_step(run)
    assert 3 <= reached < STEPS
    assert f"stopping after step {reached}, as asked" in stopped.out
    assert RunDirectory(run).checkpoint_steps()[-1] == reached
    command = re.search(r"stopped before the end; to go on: foresail (.*)", stopped.out)
    assert command is not None and command[1] == f"resume runs/{stage}"

    resumed = foresail.run(*shlex.split(command[1]))
    assert resumed.code == 0 and "stopped" not in resumed.out
    assert f"{stage} {reached + 1}/" in resumed.out and f"{stage} {reached}/" not in resumed.out
    assert_same_end(run, whole / stage)


def test_a_signal_between_checkpoints_saves_where_it_is(
    foresail: CommandLine, whole: Path, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "rl"
    running = foresail.start("rl", whole / "rl.toml", "run.root=runs", "checkpoints.every=1000")
    running.until(lambda: last_step(run) >= 3)
    running.send(signal.SIGTERM)
    assert running.wait().code == 0
    assert RunDirectory(run).checkpoint_steps() == [last_step(run)]
    assert foresail.run("resume", "runs/rl").code == 0
    metrics = RunDirectory(run).read_metrics()
    assert without_times(metrics) == without_times(RunDirectory(whole / "rl").read_metrics())


def test_a_signal_before_the_first_step_is_heard(foresail: CommandLine, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "rl"
    running = begin(foresail, whole, "rl")
    running.until(lambda: (run / "tensorboard").exists())  # opened after the signals are
    running.send(signal.SIGTERM)
    stopped = running.wait()
    assert stopped.code == 0 and "to go on: foresail resume" in stopped.out
    assert RunDirectory(run).checkpoint_steps() == [last_step(run)]
    assert foresail.run("resume", run).code == 0
    assert_same_end(run, whole / "rl")


def test_other_data_under_a_stopped_run_are_refused(
    foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    rows = [json.dumps({"prompt": f"{n} +1", "answer": str((n + 1) % 10)}) + "\n" for n in range(9)]
    data = tmp_path / "problems.jsonl"
    data.write_text("".join(rows))
    recipe = rl_recipe(tiny_checkpoint, tmp_path, data=Problems(source=str(data)), steps=1)
    run = run_rl(recipe).run
    data.write_text("".join(rows[:8]))
    refused = foresail.run("resume", run, "steps=2")
    assert refused.code == 1 and "is not what the run began with (9 problems" in refused.err
    data.write_text("".join(rows))
    assert foresail.run("resume", run).code == 0


def test_a_finished_run_says_so_and_computes_nothing(foresail: CommandLine, whole: Path) -> None:
    run = whole / "rl"
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}
    done = foresail.run("resume", run)
    assert done.code == 0 and f"{run} is finished; to train on from its end: " in done.out
    assert f"model.path={run}/checkpoints/step_" in done.out
    assert before == {path: path.stat().st_mtime_ns for path in run.rglob("*")}


@pytest.mark.parametrize("stage", ["sft", "rl"])  # from fresh weights, and from a checkpoint
def test_the_command_that_trains_on_from_the_end_is_accepted(
    foresail: CommandLine, whole: Path, tmp_path: Path, stage: str
) -> None:
    run = shutil.copytree(whole / stage, tmp_path / "a folder" / stage)
    first_line = foresail.run("resume", run).out.splitlines()[0]
    _, command, *words = shlex.split(first_line.partition("from its end: ")[2])
    assert command == stage
    checked = foresail.run("check", *words)
    assert checked.code == 0 and "ready to run" in checked.out, checked.out + checked.err


def test_steps_that_were_changed_by_hand_are_refused_and_the_advice_works(
    foresail: CommandLine, whole: Path, tmp_path: Path
) -> None:
    run = shutil.copytree(whole / "rl", tmp_path / "rl")
    recipe = run / "recipe.toml"
    recipe.write_text(set_steps(recipe.read_text(), STEPS + 1))
    refused = foresail.run("resume", run)
    assert refused.code == 1 and f"steps is {STEPS + 1}, was {STEPS}" in refused.err
    assert f"foresail resume {run} KEY=VALUE" in refused.err
    assert foresail.run("resume", run, f"steps={STEPS + 1}").code == 0
    assert last_step(run) == STEPS + 1


def set_steps(recipe: str, steps: int) -> str:
    changed, times = re.subn(rf"(?m)^steps = {STEPS}\b", f"steps = {steps}", recipe)
    assert times == 1
    return changed


def test_fewer_steps_than_were_done_are_enough(foresail: CommandLine, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "rl"
    running = begin(foresail, whole, "rl")
    running.until(lambda: last_step(run) >= 3)
    running.send(signal.SIGTERM)
    assert running.wait().code == 0
    reached = last_step(run)
    recipe = read_run(run).model_copy(update={"steps": reached - 1})
    assert run_rl(recipe, resume=True).finished  # type: ignore[arg-type]
    assert last_step(run) == reached and RunDirectory(run).checkpoint_steps()[-1] == reached


def test_a_second_ctrl_c_leaves_at_once(foresail: CommandLine, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "sft"
    running = begin(foresail, whole, "sft")
    running.until(lambda: last_step(run) >= 3)
    running.send(signal.SIGINT)
    running.send(signal.SIGINT)
    stopped = running.wait()
    assert stopped.code in (0, 130)  # 0 when both came within the same step's end
    assert "to go on: foresail resume runs/sft" in (stopped.err if stopped.code else stopped.out)
    assert foresail.run("resume", run).code == 0
    assert_same_end(run, whole / "sft")


def test_resuming_a_finished_run_does_nothing(whole: Path, foresail: CommandLine) -> None:
    before = {path: path.stat().st_mtime_ns for path in (whole / "rl" / "checkpoints").rglob("*")}
    resumed = foresail.run("resume", whole / "rl")
    assert resumed.code == 0 and f"checkpoint: {whole / 'rl'}/checkpoints/step_{STEPS}" in resumed.out
    assert {path: path.stat().st_mtime_ns for path in (whole / "rl" / "checkpoints").rglob("*")} == before


def test_a_run_that_was_moved_goes_on_where_it_is(foresail: CommandLine, whole: Path, tmp_path: Path) -> None:
    running = begin(foresail, whole, "rl")
    running.until(lambda: last_step(tmp_path / "runs" / "rl") >= 2)
    running.send(signal.SIGTERM)
    assert running.wait().code == 0
    (tmp_path / "runs" / "rl").rename(tmp_path / "elsewhere")
    resumed = foresail.run("resume", "elsewhere")
    assert resumed.code == 0
    # the folder is named as it was given
    assert resumed.out.splitlines()[-1] == f"checkpoint: elsewhere/checkpoints/step_{STEPS}"
    assert_same_end(tmp_path / "elsewhere", whole / "rl")


# Killed.


@pytest.mark.parametrize(("stage", "seed", "kills"), [("rl", 0, 6), ("rl", 1, 6), ("sft", 2, 4)])
def test_a_run_killed_at_random_moments_loses_at_most_the_current_step(
    foresail: CommandLine, whole: Path, tmp_path: Path, stage: str, seed: int, kills: int
) -> None:
    """Killed again and again: at the start, in a step, while saving.

    A step counts as done when its record is in metrics.jsonl. If N was the last one at the kill, the newest
    whole checkpoint is that of N or of N - 1, so the resumed run goes on with step N + 1, or repeats N.
    """
    delays, killed = random.Random(seed), 0
    while killed < 3:  # on a busy machine a run may get away before it is killed
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        killed = kill_again_and_again(foresail, whole, stage, delays, kills)
        assert_same_end(tmp_path / "runs" / stage, whole / stage)


def kill_again_and_again(
    foresail: CommandLine, whole: Path, stage: str, delays: random.Random, kills: int
) -> int:
    """How often it was killed before it came to its end."""
    run, step_seconds = RunDirectory(foresail.folder / "runs" / stage), seconds_per_step(whole / stage)
    killed, done = 0, False
    while not done:
        running = foresail.start("resume", run.path) if run.exists() else begin(foresail, whole, stage)
        if killed < kills:
            reached = last_step(run.path)
            # now and then amid the start; else somewhere in the steps after the first new record
            if delays.random() < 0.7:
                running.until(lambda reached=reached: last_step(run.path) > reached)  # type: ignore[misc]
            else:
                running.until(run.exists)
            time.sleep(delays.uniform(0, 3 * step_seconds))
            running.send(signal.SIGKILL)
        finished = running.wait()
        assert finished.code in (0, -signal.SIGKILL), finished.err
        killed += finished.code != 0
        done = finished.code == 0
        newest = run.checkpoint_steps()[-1] if run.checkpoint_steps() else 0
        logged = last_step(run.path)
        assert newest in (logged, logged - 1)
    return killed


def test_a_kill_amid_a_line_of_the_log_is_mended(foresail: CommandLine, whole: Path, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "runs" / "rl")
    running = begin(foresail, whole, "rl")
    running.until(lambda: last_step(run.path) >= 3)
    running.send(signal.SIGKILL)
    running.wait()
    with open(run.metrics.path, "ab") as file:
        file.write(b'{"step": 99, "critic/sco')
    leftover = run.checkpoints_path / ".tmp-123-step_99"
    leftover.mkdir()
    (leftover / "model.safetensors").write_bytes(b"half")
    assert foresail.run("resume", run.path).code == 0
    assert_same_end(run.path, whole / "rl")


# The installed command itself, in an interpreter of its own.


@pytest.mark.slow
def test_the_installed_command_stops_and_goes_on(whole: Path, tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("foresail"))]
    if not Path(command[0]).exists():
        pytest.skip("the console script is not installed beside this interpreter")
    root = str(Path(__file__).parents[2])  # what is tested here, wherever the package was installed from
    env = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": root}
    run = tmp_path / "runs" / "rl"
    process = subprocess.Popen(
        [*command, "rl", str(whole / "rl.toml"), "run.root=runs"],
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 600
    while last_step(run) < 3 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)  # looking takes time from the run
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0 and err == ""
    go_on = re.search(r"to go on: (.*)", out)
    assert go_on is not None
    # as it stands, in a shell: the line is meant to be copied
    done = subprocess.run(go_on[1], shell=True, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert_same_end(run, whole / "rl")
    assert PROBLEMS in (run / "recipe.toml").read_text()
