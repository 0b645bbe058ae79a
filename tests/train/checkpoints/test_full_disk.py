"""A disk that is full, or a folder that cannot be written: one clear line, and what was saved stays whole."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from command_line import CommandLine, Finished
from tiny_world import rl_recipe

from foresail.model.hf import load_model
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.tables.parts import Checkpoints, Optimizer
from foresail.runlog.directory import RunDirectory
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.learner import Learner
from foresail.train.optim.master_adamw import MasterAdamW

STEPS = 12


@pytest.fixture
def recipe(tiny_checkpoint: Path, tmp_path: Path) -> Path:
    path = tmp_path / "rl.toml"
    path.write_text(to_toml(rl_recipe(tiny_checkpoint, tmp_path / "runs", steps=STEPS)))
    return path


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes, of which a filler takes all but 600 kB: room for about four checkpoints."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if shutil.which("mount") is None:
        pytest.skip("there is no mount command here")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True, text=True
    )
    if mounted.returncode != 0:
        pytest.skip(f"no disk of our own can be mounted here: {mounted.stderr.strip()}")
    try:
        (disk / "filler").write_bytes(bytes(2_450_000))
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def assert_clear_error(finished: Finished, *words: str) -> None:
    assert finished.code == 1
    *warnings, error = finished.err.splitlines()
    assert error.startswith("error: ") and all(line.startswith("warning: ") for line in warnings)
    for word in words:
        assert word in error


def assert_last_checkpoint_whole(run: Path) -> int:
    """The newest loads with its optimiser, and nothing half-written stands beside it."""
    directory = RunDirectory(run)
    step = directory.checkpoint_steps()[-1]
    checkpoint = directory.checkpoint_path(step)
    model = load_model(checkpoint, dtype=torch.float32, device=torch.device("cpu"))
    Learner(name="policy", model=model, optimizer=MasterAdamW(model, Optimizer())).load(checkpoint)
    assert read_progress(checkpoint).step == step
    assert not list(run.rglob(".tmp-*"))
    return step


def weights(run: Path) -> bytes:
    return (run / "checkpoints" / f"step_{STEPS}" / "model.safetensors").read_bytes()


def test_a_full_disk_is_a_clear_error_and_the_run_goes_on_when_there_is_room(
    foresail: CommandLine, recipe: Path, small_disk: Path, tmp_path: Path
) -> None:
    stopped = foresail.run("rl", recipe, f"run.root={small_disk}", "checkpoints.keep=100")
    assert_clear_error(stopped, "cannot write in", "No space left on device", "free some space there")
    step = assert_last_checkpoint_whole(small_disk / "rl")
    assert 1 <= step < STEPS

    (small_disk / "filler").unlink()
    assert foresail.run("resume", small_disk / "rl").code == 0
    assert foresail.run("rl", recipe).code == 0
    assert weights(small_disk / "rl") == weights(tmp_path / "runs" / "rl")


@pytest.mark.parametrize("limit", ["weights", "optimizer"])
def test_a_file_that_may_not_grow_is_a_clear_error(
    foresail: CommandLine, recipe: Path, tmp_path: Path, limit: str
) -> None:
    """A quota, in effect: no file may be larger than so many bytes."""
    run = tmp_path / "runs" / "rl"
    assert foresail.run("rl", recipe, "steps=2").code == 0
    newest = run / "checkpoints" / "step_2"
    file = {"weights": "model.safetensors", "optimizer": "trainer/optimizer.safetensors"}[limit]
    largest = (newest / file).stat().st_size - 100
    stopped = foresail.run("rl", recipe, "run.name=starved", largest_file=largest)
    assert_clear_error(stopped, "cannot write in", "File too large", "free some space there")
    assert not list((tmp_path / "runs" / "starved").rglob(".tmp-*"))


def test_a_log_that_may_not_grow_is_a_clear_error(
    foresail: CommandLine, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    recipe = tmp_path / "long.toml"
    long = rl_recipe(tiny_checkpoint, tmp_path / "runs", steps=500, checkpoints=Checkpoints(every=500))
    recipe.write_text(to_toml(long))
    largest = (tiny_checkpoint / "model.safetensors").stat().st_size + 1000  # the self-test saves one
    stopped = foresail.run("rl", recipe, largest_file=largest)
    assert_clear_error(stopped, "cannot write in", "File too large", "free some space there")
    metrics = RunDirectory(tmp_path / "runs" / "rl").read_metrics()
    assert [record["step"] for record in metrics] == list(range(metrics[-1]["step"] + 1))


def test_a_disk_too_small_for_one_checkpoint_is_refused_before_the_start(
    foresail: CommandLine, recipe: Path, small_disk: Path
) -> None:
    (small_disk / "filler").write_bytes(bytes(3_108_000))
    stopped = foresail.run("rl", recipe, f"run.root={small_disk}")
    assert_clear_error(stopped, "one checkpoint takes", "set run.root to another disk")
    assert not (small_disk / "rl").exists()


def test_a_file_where_the_run_should_be_is_a_clear_error(
    foresail: CommandLine, recipe: Path, tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("a file")
    for root, name in (("taken", "rl"), (".", "taken")):
        stopped = foresail.run("rl", recipe, f"run.root={root}", f"run.name={name}")
        assert_clear_error(stopped, "cannot be made, because", "is a file", "set run.root or run.name")
    assert (tmp_path / "taken").read_text() == "a file"


def test_a_file_in_the_way_inside_the_run_is_a_clear_error(
    foresail: CommandLine, recipe: Path, tmp_path: Path
) -> None:
    run = tmp_path / "runs" / "rl"
    run.mkdir(parents=True)
    (run / "checkpoints").write_text("a file")
    stopped = foresail.run("rl", recipe)
    assert_clear_error(stopped, "cannot write in", "a file stands where a folder is needed")


def test_a_read_only_disk_is_a_clear_error(foresail: CommandLine, recipe: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    stopped = foresail.run("rl", recipe, f"run.root={small_disk}")
    assert_clear_error(stopped, "cannot be written to", "set run.root to a folder of yours")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_of_someone_else_is_a_clear_error(
    foresail: CommandLine, recipe: Path, tmp_path: Path
) -> None:
    (tmp_path / "locked").mkdir(mode=0o500)
    stopped = foresail.run("rl", recipe, "run.root=locked")
    assert_clear_error(stopped, "cannot be written to", "set run.root to a folder of yours")
