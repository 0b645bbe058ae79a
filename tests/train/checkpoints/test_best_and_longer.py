"""The best step kept, an early end, runs that go on longer, and checkpoints that a disk has damaged."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tiny_world import HELD_OUT, rl_recipe, sft_recipe

from foresail.recipe.reading.load import RecipeError, load_recipe
from foresail.recipe.stages.rl import Rl
from foresail.recipe.tables.parts import HELD_OUT_MEAN, Checkpoints, Optimizer, Problems
from foresail.runlog.directory import RunDirectory
from foresail.train import session as session_module
from foresail.train.checkpoints.best import Best, find_metric, judge, measure
from foresail.train.checkpoints.checkpoint import DamagedCheckpoint, latest_checkpoint, read_progress
from foresail.train.checkpoints.resume import extend, finished_checkpoint, go_back
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft

TIMES = ("timing_s/", "perf/", "rollout/tokens_per_second", "rollout/groups_", "rollout/drafted")


def test_a_metric_is_found_by_the_end_of_its_name() -> None:
    names = ["val-core/a/acc/mean@1", "val-core/b/acc/mean@1", "train/loss"]
    assert find_metric("a/acc/mean@1", names) == "val-core/a/acc/mean@1"
    assert find_metric("loss", names) == "train/loss"
    assert find_metric("oss", names) is None
    with pytest.raises(ValueError, match=r"fits val-core/a/acc/mean@1, val-core/b/acc/mean@1; write out"):
        find_metric("acc/mean@1", names)
    assert measure("loss", {"train/loss": float("nan")}) is None


def test_a_tie_is_no_improvement() -> None:
    best = judge(None, 0.5, 1, "max")
    best = judge(best, 0.5, 2, "max")
    assert best == Best(value=0.5, step=1, waiting=1)
    assert judge(best, 0.4, 3, "max") == Best(value=0.5, step=1, waiting=2)
    assert judge(best, 0.4, 3, "min") == Best(value=0.4, step=3)


class Measured:
    """Held-out accuracies as a test wants them, one for each evaluation."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, values: dict[int, float]) -> None:
        for user in ("start_check", "run"):
            monkeypatch.setattr(
                f"foresail.train.rollouts.{user}.measure",
                lambda session, setup, step: {"val-core/a/acc/mean@1": values[step]},
            )


def with_best(checkpoint: Path, root: Path, **changes: Any) -> Rl:
    settings = {"best": "acc/mean@1", "keep": 1, "every": 2} | changes
    return rl_recipe(
        checkpoint,
        root,
        steps=6,
        eval_every=1,
        eval=Problems(source=HELD_OUT),
        checkpoints=Checkpoints(**settings),
    )


def test_the_best_step_is_kept_and_the_run_ends_early(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Measured(monkeypatch, {0: 0.9, 1: 0.2, 2: 0.1, 3: 0.6, 4: 0.5, 5: 0.6, 6: 0.7})
    outcome = run_rl(with_best(tiny_checkpoint, tmp_path, patience=2))
    run = RunDirectory(outcome.run)
    assert outcome.finished and run.checkpoint_steps() == [3, 5]
    assert os.readlink(run.checkpoints_path / "best") == "step_3"
    assert (run.checkpoints_path / "best" / "model.safetensors").is_file()
    # the best one is for use, the newest one for going on
    assert sorted(path.name for path in (run.checkpoint_path(3) / "trainer").iterdir()) == [
        "manifest.json",
        "progress.json",
    ]
    assert read_progress(outcome.checkpoint).best == Best(value=0.6, step=3, waiting=2)
    assert "stopping early: acc/mean@1 was best in step 3 (0.6)" in " ".join(capsys.readouterr().out.split())
    # it may go on all the same, and what follows is counted anew
    recipe = extend(run, ["checkpoints.patience=none"])
    again = run_rl(recipe, resume=True)
    assert again.finished and run.checkpoint_steps() == [6]
    assert os.readlink(run.checkpoints_path / "best") == "step_6"


def test_held_out_accuracy_is_the_default_and_the_mean_over_all_sets(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    record = {"val-core/a/acc/mean@1": 0.2, "val-core/b/acc/mean@4": 0.6, "val-core/b/reward/mean@4": 9.0}
    assert measure(HELD_OUT_MEAN, record) == pytest.approx(0.4)
    assert measure(HELD_OUT_MEAN, {"val-core/b/reward/mean@4": 9.0, "train/loss": 1.0}) == 9.0
    assert measure(HELD_OUT_MEAN, {"train/loss": 1.0}) is None
    default = type(rl_recipe(tiny_checkpoint, tmp_path)).model_fields["checkpoints"].default
    assert (default.best, default.keep) == (HELD_OUT_MEAN, 2)
    assert not rl_recipe(tiny_checkpoint, tmp_path, checkpoints=default).keeps_best
    assert with_best(tiny_checkpoint, tmp_path, best=HELD_OUT_MEAN).keeps_best


def test_checkpoints_by_the_clock(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each measurement of a step takes four minutes here, so that every third step is saved, and the last."""
    clock = [0.0]
    monkeypatch.setattr(session_module.time, "monotonic", lambda: clock[0])
    saved, save = [], session_module.Session.save

    def note(self: Any) -> None:
        saved.append(self.progress.step)
        save(self)

    monkeypatch.setattr(session_module.Session, "save", note)

    def measure_slowly(self: Any, progress: Any, metrics: Any) -> Any:
        clock[0] += 240
        return progress

    monkeypatch.setattr(session_module.Session, "judge_step", measure_slowly)
    run_rl(rl_recipe(tiny_checkpoint, tmp_path, steps=7, checkpoints=Checkpoints()))
    assert saved == [3, 6, 7]


def test_a_resumed_run_knows_its_best_step(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Measured(monkeypatch, {0: 0.0, 1: 0.8, 2: 0.1, 3: 0.1, 4: 0.1, 5: 0.1, 6: 0.1})
    recipe = with_best(tiny_checkpoint, tmp_path, patience=3)
    original = session_module.Session.end_step

    def stop_after_two(self: Any, progress: Any, metrics: Any) -> None:
        original(self, progress, metrics)
        self.stop.requested = progress.step == 2

    monkeypatch.setattr(session_module.Session, "end_step", stop_after_two)
    assert not run_rl(recipe).finished
    monkeypatch.setattr(session_module.Session, "end_step", original)
    outcome = run_rl(recipe, resume=True)
    assert outcome.finished and RunDirectory(outcome.run).checkpoint_steps() == [1, 4]


def test_what_best_asks_for_is_checked(tiny_checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"patience waits for a metric; name it with checkpoints\.best"):
        rl_recipe(tiny_checkpoint, tmp_path, checkpoints=Checkpoints(patience=2))
    with pytest.raises(ValueError, match=r"is measured on \[eval\]; set eval_every"):
        rl_recipe(tiny_checkpoint, tmp_path, checkpoints=Checkpoints(best="val-core/a/acc/mean@1"))
    warned = rl_recipe(tiny_checkpoint, tmp_path, checkpoints=Checkpoints(best="actor/pg_loss"))
    assert any('checkpoints.best_is = "min"' in line for line in warned.warnings())


# Longer.


def record(run: Path) -> dict[str, Any]:
    """Metrics without times, every sample, and the tensors of the newest checkpoint."""
    directory = RunDirectory(run)
    newest = latest_checkpoint(directory)
    assert newest is not None
    rows = [
        {name: value for name, value in row.items() if not name.startswith(TIMES)}
        for row in directory.read_metrics()
    ]
    samples = {path.name: gzip.decompress(path.read_bytes()) for path in (run / "rollouts").glob("*.gz")}
    tensors = {
        f"{file.name} {name}": tensor.tolist()
        for file in newest.rglob("*.safetensors")
        for name, tensor in load_file(file).items()
    }
    return {"metrics": rows, "samples": samples, "tensors": tensors}


def test_an_extended_run_equals_one_that_had_the_steps_from_the_start(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    at_once = run_rl(rl_recipe(tiny_checkpoint, tmp_path / "whole", steps=4))
    begun = run_rl(rl_recipe(tiny_checkpoint, tmp_path / "parts", steps=2))
    run = RunDirectory(begun.run)
    before = run.recipe_path.read_text()
    recipe = extend(run, ["steps=4", "checkpoints.keep=3"])
    outcome = run_rl(recipe, resume=True)  # type: ignore[arg-type]
    assert outcome.finished
    assert record(outcome.run) == record(at_once.run)
    assert (begun.run / "recipe.1.toml").read_text() == before
    assert load_recipe(run.recipe_path).steps == 4
    extend(run, ["steps=5"])
    assert load_recipe(begun.run / "recipe.2.toml").steps == 4


def test_a_longer_schedule_follows_the_new_end(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    optimizer = Optimizer(lr=1e-3, schedule="linear")
    recipe = sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path, steps=2, optimizer=optimizer)
    run = RunDirectory(run_sft(recipe).run)
    run_sft(extend(run, ["steps=4"]), resume=True)  # type: ignore[arg-type]
    rates = [row["train/lr"] for row in run.read_metrics()]
    assert rates == pytest.approx([5e-4, 0.0, 2.5e-4, 0.0])


def test_what_changes_the_steps_that_were_done_is_refused(tiny_sft_run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "sft"
    shutil.copytree(tiny_sft_run, copy)
    run = RunDirectory(copy)
    with pytest.raises(
        RecipeError, match=r"optimizer\.lr, batch_size cannot change|batch_size, optimizer\.lr"
    ):
        extend(run, ["optimizer.lr=1", "steps=99", "batch_size=3"])
    with pytest.raises(RecipeError, match=r"has done 60 steps; set steps above that, like steps=120"):
        extend(run, ["steps=60"])
    with pytest.raises(RecipeError, match="unknown key"):
        extend(run, ["stepps=99"])
    assert not list(copy.glob("recipe.*.toml"))


# Damage.


@pytest.fixture
def two_checkpoints(tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path) -> RunDirectory:
    recipe = sft_recipe(
        tiny_tokenizer, tiny_conversations, tmp_path, steps=3, checkpoints=Checkpoints(every=1, keep=2)
    )
    return RunDirectory(run_sft(recipe).run)


def turn_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-7] ^= 16
    file.write_bytes(bytes(content))


@pytest.mark.parametrize("name", ["model.safetensors", "trainer/optimizer.safetensors", "tokenizer.json"])
def test_a_turned_bit_is_found_and_the_advice_works(two_checkpoints: RunDirectory, name: str) -> None:
    run = two_checkpoints
    expected = record(run.path)
    newest = run.checkpoint_path(3)
    turn_a_bit(newest / name)
    recipe = extend_nothing(run)
    advice = rf"{name} is damaged: its checksum .* step 2 is whole: foresail resume {run.path} --from-step 2"
    with pytest.raises(DamagedCheckpoint, match=advice):
        run_sft(recipe, resume=True)  # type: ignore[arg-type]
    (moved,) = go_back(run, 2)
    assert moved == run.checkpoints_path / "left_step_3" and moved.is_dir()
    run_sft(recipe, resume=True)  # type: ignore[arg-type]
    assert record(run.path) == expected  # step 3 was done again, to the bit


def extend_nothing(run: RunDirectory) -> Any:
    return load_recipe(run.recipe_path)


def test_files_that_are_gone_or_cut_are_found(two_checkpoints: RunDirectory) -> None:
    run = two_checkpoints
    weights = run.checkpoint_path(3) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1])
    with pytest.raises(DamagedCheckpoint, match=r"was written with \d+; step 2 is whole"):
        go_back(run, 3)
    weights.unlink()
    (run.checkpoint_path(2) / "trainer" / "optimizer.safetensors").unlink()
    with pytest.raises(DamagedCheckpoint, match=r"is gone; no other checkpoint there can be resumed"):
        run_sft(extend_nothing(run), resume=True)
    with pytest.raises(ValueError, match=r"no checkpoint of step 7; steps there: 2, 3"):
        go_back(run, 7)


def test_older_checkpoints_may_hold_weights_only(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path
) -> None:
    settings = Checkpoints(every=1, keep=3, resumable=1)
    recipe = sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path, steps=3, checkpoints=settings)
    run = RunDirectory(run_sft(recipe).run)
    states = [
        (run.checkpoint_path(step) / "trainer" / "optimizer.safetensors").is_file() for step in (1, 2, 3)
    ]
    assert states == [False, False, True]
    assert all((run.checkpoint_path(step) / "model.safetensors").is_file() for step in (1, 2, 3))
    with pytest.raises(DamagedCheckpoint, match=r"holds weights only, .*step 3 is whole"):
        go_back(run, 2)


@pytest.mark.parametrize("manifest", [True, False])
def test_a_run_of_an_earlier_version_goes_on_with_a_warning(
    two_checkpoints: RunDirectory, manifest: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """They had no copy of the recipe, no checksum of the progress, and first no manifest at all."""
    run, trainer = two_checkpoints, two_checkpoints.checkpoint_path(3) / "trainer"
    entries = json.loads((trainer / "manifest.json").read_text())
    for name in ("recipe.toml", "log.json", "manifest.json"):
        (trainer / name).unlink()
    if manifest:
        without = {name: entry for name, entry in entries.items() if not name.startswith("trainer/")}
        (trainer / "manifest.json").write_text(json.dumps(without))
    run.recipe_path.write_text(run.recipe_path.read_text().split("\n", 1)[1])
    assert run_sft(extend(run, ["steps=4"]), resume=True).finished  # type: ignore[arg-type]
    assert "was written by an earlier version" in " ".join(capsys.readouterr().out.split())
    assert run.checkpoint_steps() == [3, 4]


def test_the_command_extends_and_goes_back(foresail: Any, two_checkpoints: RunDirectory) -> None:
    run = two_checkpoints
    done = foresail.run("resume", run.path)
    assert done.code == 0 and f"resume {run.path} steps=6" in done.out
    refused = foresail.run("resume", run.path, "optimizer.lr=1")
    assert refused.code == 1 and "error: optimizer.lr cannot change in the middle" in refused.err
    longer = foresail.run("resume", run.path, "steps=4", "--from-step", "2")
    assert longer.code == 0, longer.err
    assert "set aside" in longer.out and run.checkpoint_steps() == [3, 4]
    turn_a_bit(run.checkpoint_path(4) / "model.safetensors")
    damaged = foresail.run("resume", run.path, "steps=5")
    assert damaged.code == 1 and f"foresail resume {run.path} --from-step 3" in damaged.err


def test_what_a_kill_after_the_last_save_leaves_is_tidied(two_checkpoints: RunDirectory) -> None:
    leftover = two_checkpoints.checkpoints_path / ".tmp-step_1"
    leftover.mkdir()
    assert finished_checkpoint(
        two_checkpoints, extend_nothing(two_checkpoints)
    ) == two_checkpoints.checkpoint_path(3)
    assert not leftover.exists()


# Smaller.


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_in_16_bits_change_nothing_of_the_run(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path, dtype: str
) -> None:
    """Stopped and resumed from a rounded checkpoint, a float32 run ends in the weights of one that never was."""
    settings = Checkpoints(every=1, keep=2, resumable=1, dtype=dtype)  # type: ignore[arg-type]
    plain = run_sft(sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path / "plain", steps=4))
    begun = run_sft(
        sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path / "small", steps=2, checkpoints=settings)
    )
    outcome = run_sft(extend(RunDirectory(begun.run), ["steps=4"]), resume=True)  # type: ignore[arg-type]
    state, exact = (
        load_file(outcome.checkpoint / "trainer" / f"{name}.safetensors") for name in ("optimizer", "weights")
    )
    expected = load_file(plain.checkpoint / "trainer" / "optimizer.safetensors")
    assert state.keys() == expected.keys()
    assert all(torch.equal(state[name], expected[name]) for name in expected)
    saved = load_file(outcome.checkpoint / "model.safetensors")
    whole = load_file(plain.checkpoint / "model.safetensors")
    assert {str(tensor.dtype) for tensor in saved.values()} == {f"torch.{dtype}"}
    assert all(torch.equal(saved[name], whole[name].to(saved[name].dtype)) for name in whole)
    assert {tensor.dtype for tensor in exact.values()} == {torch.float32}
    older = RunDirectory(outcome.run).checkpoint_path(3)
    assert sorted(path.name for path in (older / "trainer").iterdir()) == ["manifest.json", "progress.json"]
