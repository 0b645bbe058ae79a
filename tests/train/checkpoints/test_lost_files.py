"""What somebody takes away from a run while it goes on: folder, log, samples, memory. No checkpoint is lost."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import weights
from tiny_world import rl_recipe, sft_recipe

from foresail.api.stages import read_run
from foresail.recipe.reading.limits import explaining_limits
from foresail.recipe.reading.out_of_memory import OutOfMemory, is_out_of_memory
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.parts import Checkpoints
from foresail.runlog import directory as directory_module
from foresail.runlog.directory import RunDirectory
from foresail.runlog.held_folder import FolderGone
from foresail.train import session as session_module
from foresail.train.stages import supervised
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

STEPS = 4


@pytest.fixture
def recipe(tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path) -> Sft:
    every = Checkpoints(every=1)
    return sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path / "runs", steps=STEPS, checkpoints=every)


def after_step(number: int, act: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    original = session_module.Session.end_step

    def end_step(self: Any, progress: Any, metrics: Any) -> None:
        original(self, progress, metrics)
        if progress.step == number:
            act()

    monkeypatch.setattr(session_module.Session, "end_step", end_step)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("step", [1, 2, STEPS])
def test_a_moved_folder_ends_the_run_and_it_goes_on_in_its_new_place(
    recipe: Sft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    folder, place = recipe.run.folder, tmp_path / "elsewhere"
    with monkeypatch.context() as patched:
        after_step(step, lambda: folder.rename(place), patched)
        with pytest.raises(FolderGone) as gone:
            run_sft(recipe)
    told = str(gone.value)
    assert f"it is {place} now, and {place}/checkpoints/step_{step} is its last" in told
    assert f"to go on: foresail resume {place}" in told and not folder.exists()
    outcome = run_sft(read_run(place), resume=True)  # type: ignore[arg-type]
    whole = run_sft(recipe)
    assert outcome.checkpoint == place / f"checkpoints/step_{STEPS}"
    assert weights(outcome.checkpoint).equal(weights(whole.checkpoint))


@pytest.mark.parametrize("writer", ["save_learners", "write_copy", "write_log_state"])
@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_a_folder_that_is_moved_while_a_checkpoint_is_written_is_not_made_again(
    recipe: Sft, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: str, late: bool
) -> None:
    """Files may be written under the old name then, whole or not."""
    folder, place, original = recipe.run.folder, tmp_path / "elsewhere", getattr(session_module, writer)

    def move_once(*given: Any) -> None:
        if late:
            original(*given)
        if (folder / "checkpoints/step_1").is_dir():
            folder.rename(place)
        if not late:
            original(*given)

    monkeypatch.setattr(session_module, writer, move_once)
    with pytest.raises(FolderGone, match=rf"{place}/checkpoints/step_1 is its last checkpoint"):
        run_sft(recipe)
    assert not folder.exists()


@pytest.mark.parametrize("again", [False, True], ids=["gone", "another in its place"])
def test_a_removed_folder_ends_the_run(recipe: Sft, monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    folder = recipe.run.folder

    def remove() -> None:
        shutil.rmtree(folder)
        if again:
            folder.mkdir()

    after_step(2, remove, monkeypatch)
    with pytest.raises(FolderGone, match=r"was moved or removed while the run went on.*bring it back"):
        run_sft(recipe)
    assert not list(folder.rglob("step_*"))


def test_a_log_that_is_removed_meanwhile_is_written_again_whole(
    recipe: Sft, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = recipe.run.folder / "metrics.jsonl"
    after_step(2, log.unlink, monkeypatch)
    run = RunDirectory(run_sft(recipe).run)
    assert [record["step"] for record in run.read_metrics()] == [1, 2, 3, 4]
    assert f"{log} was removed while the run went on; it was written again, whole" in said(capsys)


def test_a_log_that_is_emptied_meanwhile_is_told(
    recipe: Sft, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = recipe.run.folder / "metrics.jsonl"
    after_step(2, lambda: log.write_bytes(b""), monkeypatch)
    run_sft(recipe)
    assert f"{log} was cut while the run went on" in said(capsys)


def test_a_log_that_is_gone_at_a_resume_is_told(
    recipe: Sft, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory(run_sft(recipe).run)
    whole = weights(run.checkpoint_path(STEPS))
    shutil.rmtree(run.checkpoint_path(STEPS))
    run.metrics.path.unlink()
    outcome = run_sft(recipe, resume=True)
    assert f"{run.metrics.path} is gone since step_3 was saved: history up to that step is lost" in said(
        capsys
    )
    assert weights(outcome.checkpoint).equal(whole)


@pytest.mark.parametrize("name", ["", "step_000001.jsonl.gz"], ids=["all", "one step's"])
def test_samples_that_are_gone_at_a_resume_are_told(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    recipe = rl_recipe(tiny_checkpoint, tmp_path, steps=3)
    run = RunDirectory(run_rl(recipe).run)
    whole = weights(run.checkpoint_path(3))
    shutil.rmtree(run.checkpoint_path(3))
    run_rl(recipe, resume=True)
    assert "of samples up to" not in said(capsys)
    shutil.rmtree(run.checkpoint_path(3))
    gone = run.rollouts_path / name
    gone.unlink() if name else shutil.rmtree(gone)
    outcome = run_rl(recipe, resume=True)
    assert (
        f"{run.rollouts_path} has " in (told := said(capsys)) and "of samples up to step_2, and had " in told
    )
    assert weights(outcome.checkpoint).equal(whole)


def test_samples_that_are_removed_meanwhile_are_told_and_the_run_goes_on(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Between two steps, and while a step's samples are written."""
    recipe = rl_recipe(tiny_checkpoint, tmp_path, steps=3)
    folder, write, times = recipe.run.folder / "rollouts", directory_module.write_compressed, []

    def remove_once(path: Path, rows: Any) -> None:
        write(path, rows)
        times.append(path)
        if len(times) == 2:
            shutil.rmtree(folder)

    monkeypatch.setattr(directory_module, "write_compressed", remove_once)
    run = RunDirectory(run_rl(recipe).run)
    assert run.rollout_steps() == [2, 3]
    assert f"{folder} was removed; it was made again" in said(capsys)


def test_checkpoints_that_are_removed_meanwhile_are_told_and_the_run_goes_on(
    recipe: Sft, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = recipe.run.folder / "checkpoints"
    after_step(2, lambda: shutil.rmtree(folder), monkeypatch)
    run = RunDirectory(run_sft(recipe).run)
    assert run.checkpoint_steps() == [3, 4]
    assert f"{folder} was removed; it is made again" in said(capsys)


# Memory.


def no_more(*_: Any, **__: Any) -> None:
    torch.empty(1 << 60, dtype=torch.uint8)


def test_no_memory_left_names_what_to_lower(recipe: Sft, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        after_step(2, lambda: patched.setattr(supervised, "train_step", no_more), patched)
        with pytest.raises(OutOfMemory) as ended, explaining_limits(recipe):
            run_sft(recipe)
    told = str(ended.value)
    assert "no memory left (" in told and "micro_batch_tokens=512 (now 1024), or recompute=true" in told
    assert told.endswith(f"to go on: foresail resume {recipe.run.folder} micro_batch_tokens=512")
    assert RunDirectory(recipe.run.folder).checkpoint_steps() == [1, 2]


@pytest.mark.parametrize(
    "error",
    [
        OSError(24, "Too many open files", "/tmp/x"),
        RuntimeError(
            "unable to open file </x/model.safetensors> in read-only mode: Too many open files (24)"
        ),
    ],
)
def test_no_files_left_names_the_limit(
    recipe: Sft, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def no_more(*_: Any, **__: Any) -> None:
        raise error

    with monkeypatch.context() as patched:
        after_step(2, lambda: patched.setattr(supervised, "train_step", no_more), patched)
        words = r"too many files are open \(.*ulimit -n.*then foresail resume"
        with pytest.raises(OSError, match=words), explaining_limits(recipe):
            run_sft(recipe)
    assert RunDirectory(recipe.run.folder).checkpoint_steps() == [1, 2]


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB. GPU 0 has …"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("can't start new thread"),
        type("PanicException", (BaseException,), {})(
            'Os { code: 11, message: "Resource temporarily unavailable" }'
        ),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate memory: you tried"
        ),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        OSError(12, "Cannot allocate memory"),
    ],
)
def test_every_library_s_word_for_it_is_known(error: Exception) -> None:
    assert is_out_of_memory(error)
    assert not is_out_of_memory(RuntimeError("shapes do not match"))
    assert not is_out_of_memory(type("PanicException", (BaseException,), {})("index out of range"))
