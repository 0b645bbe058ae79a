"""Pretraining in small: it learns, logs by corpus, changes with its stages, and survives kills."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch
from command_line import CommandLine
from safetensors.torch import load_file
from tiny_world import tiny_shape

from foresail.data.corpus.draw import draw_rows
from foresail.data.corpus.tokenize import tokenize
from foresail.model.hf import load_model
from foresail.recipe.reading.dump import to_toml
from foresail.recipe.reading.load import build_recipe
from foresail.recipe.stages.pretrain import Pretrain, share_out
from foresail.recipe.tables.cluster import Cluster
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.train import train_bpe
from foresail.train.checkpoints.checkpoint import read_progress
from foresail.train.session import Outcome
from foresail.train.stages import corpus_stages, pretrain
from foresail.train.stages.pretrain import run_pretrain

CLOCK = ("timing_s/", "perf/")
WORDS = {"letters": "a b c d e f g h", "digits": "1 2 3 4 5 6 7"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer, two corpora to learn from, and one that is kept: words in a circle, from any of them on."""
    folder, numbers = tmp_path_factory.mktemp("world"), random.Random(0)
    train_bpe([*WORDS.values()], vocab_size=40, alphabet="seen").save(folder / "tokenizer")
    for name, count in (("letters", 120), ("digits", 60), ("kept", 30)):
        words, lines = WORDS.get(name, WORDS["letters"]).split(), []
        for _ in range(count):
            first, length = numbers.randrange(len(words)), numbers.randint(1, 40)
            lines.append(" ".join(words[(first + n) % len(words)] for n in range(length)))
        source = folder / f"{name}.jsonl"
        source.write_text("".join(json.dumps({"text": line}) + "\n" for line in lines))
        tokenize([str(source)], tokenizer=str(folder / "tokenizer"), out=folder / name, workers=1)
    return folder


@pytest.fixture(scope="module")
def recipe(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Pretrain]:
    """Two stages, 15 updates and 4; `recipe("name", eval_every=0)`."""
    root = tmp_path_factory.mktemp("runs")

    def make(name: str, **changes: Any) -> Pretrain:
        mixture = [
            {"source": str(world / "letters"), "weight": 3.0},
            {"source": str(world / "digits"), "weight": 1.0},
        ]
        first = {"data": mixture, "tokens": 3000, "length": 32, "batch_tokens": 256, "lr": 1e-2}
        second = {
            "data": str(world / "letters"),
            "tokens": 1024,
            "length": 64,
            "batch_tokens": 256,
            "lr": 1e-2,
        }
        given = {
            "stage": "pretrain",
            "run": {"name": name, "root": str(root), "device": "cpu"},
            "model": {
                "shape": tiny_shape(40).model_dump(),
                "tokenizer": str(world / "tokenizer"),
                "dtype": "float32",
            },
            "stages": [
                {**first, "warmup_tokens": 512, "batch_warmup_tokens": 512, "batch_start_tokens": 64},
                {**second, "rope_theta": 40_000.0, "decay": "linear", "decay_tokens": 512},
            ],
            "held_out": str(world / "kept"),
            "eval_every": 5,
            "micro_batch_tokens": 96,
            "checkpoints": {"every": 1, "keep": 30, "resumable": 30},
        }
        found = build_recipe(given | changes)
        assert isinstance(found, Pretrain)
        return found

    return make


@pytest.fixture(scope="module")
def whole(recipe: Callable[..., Pretrain]) -> Outcome:
    """A run that nothing disturbs."""
    return run_pretrain(recipe("whole"))


def curve(run: Path) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in record.items() if not name.startswith(CLOCK)}
        for record in RunDirectory(run).read_metrics()
    ]


def tensors(checkpoint: Path) -> dict[str, bytes]:
    files = ("model.safetensors", "trainer/optimizer.safetensors")
    return {
        f"{file} {name}": tensor.numpy().tobytes()
        for file in files
        for name, tensor in load_file(checkpoint / file).items()
    }


def test_it_learns_and_logs_by_corpus(whole: Outcome, recipe: Callable[..., Pretrain]) -> None:
    records, steps = curve(whole.run), recipe("whole").steps
    assert whole.finished and [record["step"] for record in records] == [*range(1, steps + 1)]
    assert records[0]["train/loss"] > 3 and records[-1]["train/loss"] < 1.5
    measured = {record["step"]: record["val/loss/kept"] for record in records if "val/loss/kept" in record}
    ends = [
        record["step"] for record, after in pairwise(records) if record["train/stage"] < after["train/stage"]
    ]
    assert [*measured] == sorted({5, 10, 15, *ends, steps}) and measured[steps] < measured[5] - 0.5
    last = records[-1]
    seen = {name: last.get(f"data/tokens_seen/{name}", 0) for name in ("letters", "digits")}
    digits = [record["data/tokens_seen/digits"] for record in records if record["train/stage"] == 1]
    assert last["data/tokens_seen"] == seen["letters"] + digits[-1]
    assert last["data/tokens_seen"] == sum(record["train/tokens"] for record in records)
    first = [record for record in records if record["train/stage"] == 1]
    share = digits[-1] / sum(record["train/tokens"] for record in first)
    assert share == pytest.approx(0.25, abs=0.05)
    assert all(0 <= record["data/packing_waste"] < 0.2 for record in records)
    assert records[0]["train/tokens"] <= 64 < 200 < last["train/tokens"] <= 256
    assert 0 < first[-1]["data/epochs/letters"] < last["data/epochs/letters"]


def test_rates_follow_the_tokens(whole: Outcome) -> None:
    rates = [record["train/lr"] for record in curve(whole.run)]
    assert rates[0] == pytest.approx(1e-2 * 64 / 512)
    assert max(rates) == 1e-2 and rates[-1] == 0.0 and rates[-2] == pytest.approx(5e-3)


def test_a_stage_changes_base_and_context(whole: Outcome) -> None:
    run = RunDirectory(whole.run)
    records = curve(whole.run)
    border = max(record["step"] for record in records if record["train/stage"] == 1)
    configs = [
        json.loads((run.checkpoint_path(step) / "config.json").read_text()) for step in (border, border + 1)
    ]
    assert [config["rope_theta"] for config in configs] == [10_000.0, 40_000.0]
    assert [config["max_position_embeddings"] for config in configs] == [32, 64]
    model = load_model(whole.checkpoint, dtype=torch.float32, device="cpu")
    assert model.shape.max_context == 64 and len(model.cos) == 64


@pytest.mark.parametrize("left", [3, 15])
def test_a_resumed_run_ends_as_if_nothing_had_happened(
    whole: Outcome, recipe: Callable[..., Pretrain], left: int
) -> None:
    """From the middle of a window, and from the border of two stages."""
    name = f"from {left}"
    run = RunDirectory(shutil.copytree(whole.run, whole.run.with_name(name)))
    for step in run.checkpoint_steps():
        if step > left:
            shutil.rmtree(run.checkpoint_path(step))
    resumed = run_pretrain(recipe(name), resume=True)
    assert resumed.finished and curve(resumed.run) == curve(whole.run)
    assert tensors(resumed.checkpoint) == tensors(whole.checkpoint)
    assert read_progress(resumed.checkpoint) == read_progress(whole.checkpoint)


def test_kills_at_any_moment_change_no_bit(
    whole: Outcome, recipe: Callable[..., Pretrain], foresail: CommandLine, tmp_path: Path
) -> None:
    given = recipe("killed")
    (tmp_path / "recipe.toml").write_text(to_toml(given))
    run, numbers = tmp_path / "runs" / "killed", random.Random(1)
    running = foresail.start("pretrain", "recipe.toml", "run.root=runs")
    for goal in (3, 15):
        running.until(lambda goal=goal: run.is_dir() and len(RunDirectory(run).read_metrics()) >= goal)  # type: ignore[misc]
        running.process.join(numbers.uniform(0, 0.05))
        running.send(signal.SIGKILL)
        running.wait()
        running = foresail.start("resume", run)
    finished = running.wait()
    assert finished.code == 0, finished.err
    assert curve(run) == curve(whole.run)
    newest = RunDirectory(run).checkpoint_path(given.steps)
    assert tensors(newest) == tensors(whole.checkpoint)


def test_ranks_have_the_curve_of_one_process(whole: Outcome, recipe: Callable[..., Pretrain]) -> None:
    together = run_pretrain(recipe("together", cluster=Cluster(ranks=2)))
    for one, two in zip(curve(whole.run), curve(together.run), strict=True):
        assert one.keys() == two.keys() - {"perf/rank_imbalance"}
        for name in ("train/loss", "val/loss/kept", "data/tokens_seen"):
            assert name not in one or one[name] == pytest.approx(two[name], rel=2e-3), (one["step"], name)


def test_other_ways_to_compute_and_to_learn_train_too(
    whole: Outcome, recipe: Callable[..., Pretrain]
) -> None:
    one = {**recipe("x").stages[1].model_dump(), "data": recipe("x").stages[1].data[0].source}
    found = {
        name: curve(run_pretrain(recipe(name, stages=[one], **changes)).run)
        for name, changes in (
            ("plain", {}),
            ("anew", {"recompute": True}),
            ("eight", {"optimizer": {"states": "8bit"}}),
            ("across", {"attention": "row"}),
            ("muon", {"optimizer": {"name": "muon", "embedding_rate": 0.5}}),
        )
    }
    losses = {name: [record["train/loss"] for record in records] for name, records in found.items()}
    assert losses["anew"] == pytest.approx(losses["plain"], rel=1e-5)
    assert losses["eight"] == pytest.approx(losses["plain"], rel=0.05)
    assert losses["muon"][0] == losses["plain"][0] and losses["muon"][-1] < losses["plain"][0] - 0.3
    assert losses["across"][0] != losses["plain"][0] and losses["across"][-1] < losses["across"][0]


def test_it_goes_on_from_a_checkpoint_with_a_longer_context(
    whole: Outcome, recipe: Callable[..., Pretrain], world: Path
) -> None:
    longer = {"data": str(world / "letters"), "tokens": 256, "length": 128, "batch_tokens": 256, "lr": 1e-3}
    given = recipe(
        "longer",
        model={"path": str(whole.checkpoint), "dtype": "float32"},
        stages=[longer],
        micro_batch_tokens=128,
    )
    outcome = run_pretrain(given)
    config = json.loads((outcome.checkpoint / "config.json").read_text())
    assert (config["max_position_embeddings"], config["rope_theta"]) == (128, 40_000.0)
    assert curve(outcome.run)[0]["train/loss"] < 2


def test_it_ends_where_all_corpora_have_ended(
    recipe: Callable[..., Pretrain], world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = Mock(wraps=draw_rows)
    monkeypatch.setattr(corpus_stages, "draw_rows", draw)
    once = {"data": [{"source": str(world / "digits"), "epochs": 1}], "tokens": 10_000, "length": 32}
    given = recipe("ended", stages=[{**once, "batch_tokens": 256}], eval_every=0)
    [told] = given.supply_warnings()
    assert "the whole run ends there" in told
    outcome = run_pretrain(given)
    assert ["val/loss/kept" in line for line in curve(outcome.run)][-2:] == [False, True]
    progress = read_progress(outcome.checkpoint)
    assert outcome.finished and progress.step < recipe("x").steps
    assert draw.call_count == progress.step + 1, "an update's rows are drawn once"
    assert (
        progress.tokens["digits"] > 0.7 * json.loads((world / "digits/manifest.json").read_text())["tokens"]
    )


def test_rows_without_any_loss_stop_nothing(
    recipe: Callable[..., Pretrain], world: Path, tmp_path: Path
) -> None:
    """Two documents of three tokens make three rows of two; one of these has the last token of each."""
    source, out = tmp_path / "a.jsonl", tmp_path / "threes"
    source.write_text('{"text": "a b"}\n' * 2)
    made = tokenize([str(source)], tokenizer=str(world / "tokenizer"), out=out, workers=1)
    assert made.tokens == 6
    stage = {"data": str(out), "tokens": 6, "length": 2, "batch_tokens": 2}
    given = recipe("no-loss", stages=[stage], held_out=None, eval_every=0)
    losses = [line["train/loss"] for line in curve(run_pretrain(given).run)]
    assert [loss == 0 for loss in sorted(losses)] == [True, False, False]


def test_where_one_corpus_ends_the_warning_says_so(recipe: Callable[..., Pretrain], world: Path) -> None:
    data = [{"source": str(world / "letters"), "weight": 1.0}]
    data += [{"source": str(world / "digits"), "weight": 1.0, "epochs": 1}]
    there = json.loads((world / "digits/manifest.json").read_text())["tokens"]
    stage = {"data": data, "tokens": there * 3 // 2, "length": 32, "batch_tokens": 256}
    assert [*recipe("enough", stages=[stage]).supply_warnings()] == []
    [told] = recipe("short", stages=[stage, stage]).supply_warnings()
    assert told.startswith("stages#2: digits has") and "the others go on" in told
    assert share_out(10, {"a": 1, "b": 1}, {"a": 3, "b": 20}) == {"a": 0, "b": 13}


def test_other_corpora_and_tokenizers_are_refused(
    whole: Outcome, recipe: Callable[..., Pretrain], world: Path, tmp_path: Path
) -> None:
    train_bpe(["a b c"], vocab_size=30, alphabet="seen").save(tmp_path / "other")
    given = recipe("refused")
    other = recipe("refused", model=given.model.model_dump() | {"tokenizer": str(tmp_path / "other")})
    assert all("made with another tokenizer" in line for line in other.refusals(None))
    assert len([*other.refusals(None)]) == 3
    with pytest.raises(ValueError, match="made with another tokenizer"):
        run_pretrain(other)
    run = RunDirectory(shutil.copytree(whole.run, whole.run.with_name("changed")))
    shutil.rmtree(run.checkpoint_path(given.steps))
    moved = {**given.stages[1].model_dump(), "data": str(world / "digits")}
    changed = recipe("changed", stages=[moved], held_out=None, eval_every=0)
    with pytest.raises(ValueError, match=r"is not what .* was trained with: .*stages"):
        run_pretrain(changed, resume=True)
    newest = run.checkpoint_path(run.checkpoint_steps()[-1])
    for name in ("recipe.toml", "manifest.json"):  # as in runs of earlier versions
        (newest / "trainer" / name).unlink()
    with pytest.raises(ValueError, match="is not what the run began with"):
        run_pretrain(changed, resume=True)


def fail_at_step(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tell = Mock(side_effect=[*[None] * (number - 1), ValueError("stop"), *[None] * 9])
    monkeypatch.setattr(pretrain, "report_stage", tell)


def test_a_run_that_ends_right_after_a_resume_keeps_its_context(
    world: Path, recipe: Callable[..., Pretrain], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With low-rank pairs the model is opened as the recipe has it; corpora end before the next update."""
    stage = {
        "data": {"source": str(world / "letters"), "epochs": 1},
        "tokens": 10_000,
        "length": 64,
        "batch_tokens": 25 * 64,
        "rope_theta": 40_000.0,
    }
    given = recipe(
        "ends", stages=[stage], lora={"rank": 2}, eval_every=0, held_out=[], micro_batch_tokens=3200
    )
    fail_at_step(2, monkeypatch)
    with pytest.raises(ValueError, match="stop"):
        run_pretrain(given)
    outcome = run_pretrain(given, resume=True)
    config = json.loads((outcome.checkpoint / "config.json").read_text())
    assert outcome.finished and outcome.checkpoint.name == "step_1"
    assert (config["max_position_embeddings"], config["rope_theta"]) == (64, 40_000.0)


def test_a_shorter_stage_leaves_the_context_as_it_is_after_a_resume_too(
    world: Path, recipe: Callable[..., Pretrain], monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = {"data": str(world / "letters"), "tokens": 128, "batch_tokens": 128}
    stages = [stage | {"length": 64}, stage | {"length": 16, "tokens": 256}]
    given = recipe("shorter", stages=stages, lora={"rank": 2}, eval_every=0, held_out=[])
    fail_at_step(3, monkeypatch)
    with pytest.raises(ValueError, match="stop"):
        run_pretrain(given)
    outcome = run_pretrain(given, resume=True)
    config = json.loads((outcome.checkpoint / "config.json").read_text())
    assert outcome.checkpoint.name == "step_3" and config["max_position_embeddings"] == 64
