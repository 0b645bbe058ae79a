"""Checkpoints: whole or not there, the newest kept, and an exact way back."""

from __future__ import annotations

import errno
import json
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from small_training import small_model, small_sequences, snapshot
from tiny_world import make_tokenizer

from foresail.algorithms.batch_losses import sft_loss
from foresail.data.packing import pack
from foresail.model.decoder import Decoder
from foresail.model.hf import load_model
from foresail.recipe.shape.hf_config import SpecialIds, read_special_ids
from foresail.recipe.tables.parts import Checkpoints, Optimizer
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train import state_files as state_module
from foresail.train.checkpoints import checkpoint as checkpoint_module
from foresail.train.checkpoints.best import Best
from foresail.train.checkpoints.checkpoint import (
    Progress,
    latest_checkpoint,
    read_progress,
    save_checkpoint,
    tidy,
    tidying,
)
from foresail.train.learner import Learner, save_policy
from foresail.train.optim.master_adamw import MasterAdamW
from foresail.train.update.step import token_loss, train_step

CPU = torch.device("cpu")
SETTINGS = Optimizer(lr=1e-2, weight_decay=0.1)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", "")


def policy(model: Decoder, tokenizer: Tokenizer | None = None) -> Learner[Decoder]:
    return Learner(
        name="policy",
        model=model,
        optimizer=MasterAdamW(model, SETTINGS),
        save_weights=partial(save_policy, model, tokenizer or make_tokenizer(), None),
    )


def trained(dtype: torch.dtype = torch.float32, updates: int = 2) -> Learner[Decoder]:
    learner = policy(small_model(dtype=dtype))
    for _ in range(updates):
        update(learner)
    return learner


def update(learner: Learner[Decoder]) -> None:
    batches = pack(small_sequences(), [1 / 29] * 6, max_tokens=99)
    train_step(learner, batches, partial(token_loss, loss=sft_loss), learning_rate=0.01)


def save(run: RunDirectory, step: int, learner: Learner[Decoder], keep: int = 2) -> Path:
    return save_checkpoint(run, Progress(step=step), learner.save, Checkpoints(keep=keep))


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_tokenizers_special_ids_stand_in_the_config(run: RunDirectory) -> None:
    tokenizer = make_tokenizer()
    config = {**tokenizer.files.config, "bos_token": tokenizer.decode([3])}
    tokenizer = Tokenizer(replace(tokenizer.files, config=config))
    saved = save(run, 1, policy(small_model(), tokenizer))
    assert tokenizer.bos_id == 3
    assert read_special_ids(saved) == SpecialIds(bos=3, eos=tokenizer.eos_ids, pad=tokenizer.pad_id)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_loaded_checkpoint_goes_on_bit_for_bit(run: RunDirectory, dtype: torch.dtype) -> None:
    learner = trained(dtype)
    progress = Progress(step=7, updates=14, position=99)
    save_checkpoint(run, progress, learner.save, Checkpoints(keep=1))

    newest = latest_checkpoint(run)
    assert newest == run.checkpoint_path(7)
    loaded = load_model(newest, dtype=dtype, device=CPU)
    resumed = policy(loaded)
    resumed.load(newest)
    assert read_progress(newest) == progress
    update(learner)
    update(resumed)
    found, expected = snapshot(resumed.model, resumed.optimizer), snapshot(learner.model, learner.optimizer)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_equal_states_give_equal_files(run: RunDirectory) -> None:
    one = files(save(run, 1, trained()))
    assert one == files(save(run, 1, trained()))
    assert {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "trainer/optimizer.safetensors",
    } <= one.keys()


def test_only_the_newest_are_kept(run: RunDirectory) -> None:
    learner = trained()
    for step in (1, 2, 9, 10):
        save(run, step, learner)
    assert run.checkpoint_steps() == [9, 10]
    assert sorted(path.name for path in run.checkpoints_path.iterdir()) == ["step_10", "step_9"]
    save(run, 11, learner, keep=1)
    assert run.checkpoint_steps() == [11]


class Killed(BaseException):
    """Nothing tidies up after it."""


def kill_before(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the things that are removed, named or written of checkpoints that stand already, the first is 1."""
    left = [number]

    def counted(act: Any, *given: Any) -> Any:
        left[0] -= 1
        if not left[0]:
            raise Killed
        return act(*given)

    for name in ("name_best", "forget", "discard", "remove_checkpoint"):
        monkeypatch.setattr(checkpoint_module, name, partial(counted, getattr(checkpoint_module, name)))


def test_whatever_a_kill_after_a_save_leaves_is_done_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the best step's link, which stands for the run, names another step for good."""
    learner, settings = trained(), Checkpoints(keep=2, resumable=1)
    last = Progress(step=4, best=Best(value=1.0, step=4))

    whole = RunDirectory.create(tmp_path / "whole", "")
    for step in (1, 2, 3):
        before = Progress(step=step, best=Best(value=0.0, step=1))
        save_checkpoint(whole, before, learner.save, Checkpoints(keep=9))
    shutil.copytree(whole.path, tmp_path / "before", symlinks=True)
    save_checkpoint(whole, last, learner.save, settings)
    for place in range(1, 100):
        run = RunDirectory(shutil.copytree(tmp_path / "before", tmp_path / str(place), symlinks=True))
        with monkeypatch.context() as patch:
            kill_before(place, patch)
            with suppress(Killed):
                save_checkpoint(run, last, learner.save, settings)
                break
        run.clean()
        tidy(run, last, settings)
        assert files(run.checkpoints_path) == files(whole.checkpoints_path)
        assert os.readlink(run.checkpoints_path / "best") == "step_4"
        assert tidying(run, last, settings) == []
    assert place > 5


def test_saving_a_step_again_replaces_it(run: RunDirectory) -> None:
    learner = trained()
    before = files(save(run, 3, learner))
    update(learner)
    after = files(save(run, 3, learner))
    assert before["model.safetensors"] != after["model.safetensors"]
    assert [path.name for path in run.checkpoints_path.iterdir()] == ["step_3"]


@pytest.mark.parametrize(
    "failure",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        SafetensorError("Error while serializing: I/O error: File too large (os error 27)"),
    ],
)
@pytest.mark.parametrize("step", [3, 4])
def test_a_full_disk_leaves_the_last_checkpoint_whole(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch, failure: Exception, step: int
) -> None:
    learner = trained()
    path = save(run, 3, learner)
    before = files(path)
    update(learner)

    def fail(tensors: Any, file: Path) -> None:
        Path(file).write_bytes(b"the first half")
        raise failure

    monkeypatch.setattr(state_module, "save_file", fail)
    with pytest.raises(OSError, match=r"cannot write in .*checkpoints: .*free some space there"):
        save(run, step, learner)
    assert files(path) == before
    assert [path.name for path in run.checkpoints_path.iterdir()] == ["step_3"]


def test_a_kill_while_an_old_checkpoint_is_removed_leaves_no_half_of_it(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = trained()
    save(run, 1, learner, keep=1)

    def killed(path: Path) -> None:
        (path / "config.json").unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint_module, "discard", killed)
    with pytest.raises(KeyboardInterrupt):
        save(run, 2, learner, keep=1)
    assert run.checkpoint_steps() == [2]
    run.clean()
    assert [path.name for path in run.checkpoints_path.iterdir()] == ["step_2"]


@pytest.mark.parametrize("text", ["", "{", '{"step": 3, "colour": "blue"}', "[]", None])
def test_unreadable_progress_says_what_to_do(run: RunDirectory, text: str | None) -> None:
    path = save(run, 3, trained())
    progress = path / "trainer" / "progress.json"
    progress.unlink() if text is None else progress.write_text(text)
    with pytest.raises(ValueError, match=rf"{progress} cannot be read .*remove {path} to resume"):
        read_progress(path)


@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_an_unreadable_optimizer_says_what_to_do(run: RunDirectory, damage: str) -> None:
    learner = trained()
    path = save(run, 3, learner)
    file = path / "trainer" / "optimizer.safetensors"
    file.write_bytes(file.read_bytes()[:-100]) if damage == "cut" else file.unlink()
    with pytest.raises(ValueError, match=rf"{file} cannot be read.*remove {path} to resume"):
        learner.load(path)


@pytest.mark.parametrize("before", [torch.float32, torch.bfloat16])
def test_a_run_that_moved_to_a_machine_with_another_dtype_says_what_to_do(
    run: RunDirectory, before: torch.dtype
) -> None:
    path = save(run, 3, trained(before))
    after = torch.bfloat16 if before == torch.float32 else torch.float32
    loaded = load_model(path, dtype=after, device=CPU)
    with pytest.raises(
        ValueError, match=r"does not fit: .*another dtype; set .*, and model.dtype to that of the machine"
    ):
        policy(loaded).load(path)


def test_a_checkpoint_from_before_the_first_update_loads(run: RunDirectory) -> None:
    for dtype in (torch.float32, torch.bfloat16):
        learner = trained(dtype, updates=0)
        path = save(run, 0, learner)
        learner.load(path)
        update(learner)


def test_progress_is_plain_json(run: RunDirectory) -> None:
    path = save(run, 3, trained())
    content = json.loads((path / "trainer" / "progress.json").read_text())
    assert content == {
        "step": 3,
        "updates": 0,
        "position": 0,
        "share": 1.0,
        "easy": [],
        "places": {},
        "rows": {},
        "tokens": {},
        "rates": {},
        "ahead": 0,
        "day": "",
        "data": "",
        "reference": "",
        "teacher": "",
        "rewards": {},
        "stage": 0,
        "began": 0,
        "best": None,
        "entropy": None,
        "finished": False,
    }
