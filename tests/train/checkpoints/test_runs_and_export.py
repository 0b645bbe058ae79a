"""Runs in a list and side by side, and weights for others."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from command_line import CommandLine
from safetensors.torch import load_file

from foresail.model.hf import load_model
from foresail.runlog.comparison import choose_metrics, draw_comparison, sum_up
from foresail.runlog.directory import RunDirectory
from foresail.runlog.failure import noting_failure
from foresail.runlog.lock import lock_folder
from foresail.runlog.run_list import describe_run, find_all, in_bytes, in_words
from foresail.runlog.summary import summarize
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.checkpoints.export import export, model_card, push, require_hub

RL = 'stage = "rl"\nsteps = 20\n\n[run]\nname = "{name}"\n\n[optimizer]\nlr = {lr}\n'


def make_run(folder: Path, name: str, lr: float, accuracies: list[float], *, finished: bool = True) -> Path:
    run = RunDirectory.create(folder / name, RL.format(name=name, lr=lr))
    for step, accuracy in enumerate(accuracies):
        reward = {} if step == 0 else {"critic/rewards/mean": accuracy / 2, "rollout/accuracy": accuracy}
        run.append_metrics(step, {"val-core/gsm8k/acc/mean@1": accuracy, **reward})
    trainer = run.checkpoint_path(len(accuracies) - 1) / "trainer"
    trainer.mkdir(parents=True)
    (trainer / "progress.json").write_text(json.dumps({"finished": finished}))
    return run.path


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    make_run(tmp_path / "runs", "high", 1e-5, [0.1, 0.6, 0.4])
    make_run(tmp_path / "runs" / "older", "low", 1e-6, [0.1, 0.2, 0.3], finished=False)
    return tmp_path / "runs"


def test_runs_are_found_and_described(runs: Path) -> None:
    high, low = find_all(runs)
    assert (high, low) == (runs / "high", runs / "older" / "low")
    line = describe_run(high)
    assert (line.stage, line.steps, line.steps_asked, line.state) == ("rl", 2, 20, "finished")
    assert line.last == {"reward": "0.20", "accuracy": "0.40"}
    assert line.best == "gsm8k mean@1 0.6 (step 1)"
    assert line.size > 0
    assert describe_run(low).state == "stopped"
    with lock_folder(low):
        assert describe_run(low).state == "running"
    assert describe_run(low).state == "stopped"
    with pytest.raises(ValueError, match="no descriptors"), noting_failure(low):
        raise ValueError("no descriptors\nare left")
    assert describe_run(low).state == "failed" and summarize(low)["failure"] == "no descriptors"
    with pytest.raises(KeyboardInterrupt), noting_failure(low):
        raise KeyboardInterrupt
    assert describe_run(low).state == "stopped", "whoever stops a run knows why"
    (RunDirectory(low).checkpoint_path(2) / "trainer" / "progress.json").write_text("[")
    (low / "recipe.toml").write_text("= =")
    assert describe_run(low).stage == "?"
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        list(find_all(runs / "nowhere"))


def test_ages_and_sizes_in_words() -> None:
    assert [in_words(seconds) for seconds in (5, 150, 7300, 200_000)] == ["5 s", "2 min", "2 h", "2 d"]
    assert [in_bytes(count) for count in (2_000, 3_400_000, 1_620_000_000)] == ["2 kB", "3.4 MB", "1.6 GB"]


def test_metrics_are_chosen_by_the_ends_of_their_names(runs: Path) -> None:
    records = [RunDirectory(run).read_metrics() for run in find_all(runs)]
    assert choose_metrics(records, ["rewards/mean"]) == ["critic/rewards/mean"]
    assert choose_metrics(records, [])[0] == "val-core/gsm8k/acc/mean@1"
    with pytest.raises(ValueError, match="no run logged nonsense; logged names: critic/rewards/mean"):
        choose_metrics(records, ["nonsense"])
    assert sum_up(records[0], "val-core/gsm8k/acc/mean@1") == "0.4, 0.6 (1)"
    assert (
        sum_up([{"step": 1, "train/loss": 2.0}, {"step": 2, "train/loss": 3.0}], "train/loss") == "3, 2 (1)"
    )


def test_the_picture_of_a_comparison(runs: Path, tmp_path: Path) -> None:
    draw_comparison([runs / "high", runs / "older" / "low"], [], tmp_path / "both.png")
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")


def test_the_commands(foresail: CommandLine, runs: Path, tiny_sft_run: Path) -> None:
    listed = foresail.run("runs")
    assert listed.code == 0, listed.err
    high, low = listed.out.splitlines()[1:]
    assert high.split()[:4] == ["high", "rl", "2/20", "finished"] and "older/low" in low
    compared = foresail.run("runs", "runs/high", "runs/older/low", "--metric", "acc/mean@1")
    rows = {line.split()[0]: line.split()[1:] for line in compared.out.splitlines() if line.strip()}
    assert rows["optimizer.lr"] == ["1e-05", "1e-06"]
    assert rows["val-core/gsm8k/acc/mean@1"] == ["0.4,", "0.6", "(1)", "0.3,", "0.3", "(2)"]
    assert "reward" not in compared.out
    (foresail.folder / "empty").mkdir()
    assert "no run is there" in foresail.run("runs", "empty").err
    made = foresail.run("export", tiny_sft_run, "out")
    assert made.code == 0 and "in bfloat16, with README.md" in made.out, made.err
    assert "out is already there" in foresail.run("export", tiny_sft_run, "out").err


# Export.


def test_an_export_is_the_model_in_16_bits(tiny_sft_run: Path, tmp_path: Path) -> None:
    checkpoint = export(tiny_sft_run, tmp_path / "out", dtype="bfloat16")
    assert checkpoint == tiny_sft_run / "checkpoints" / "step_60"
    assert not (tmp_path / "out" / "trainer").exists()
    tensors = load_file(tmp_path / "out" / "model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    assert json.loads((tmp_path / "out" / "config.json").read_text())["torch_dtype"] == "bfloat16"
    whole = load_model(checkpoint, dtype=torch.bfloat16, device="cpu").state_dict()
    there = load_model(tmp_path / "out", dtype=torch.bfloat16, device="cpu").state_dict()
    assert all(torch.equal(there[name], whole[name]) for name in whole)
    assert Tokenizer.load(tmp_path / "out").chat is not None
    with pytest.raises(ValueError, match="use one of bfloat16, float16, float32"):
        export(tiny_sft_run, tmp_path / "other", dtype="int4")


def test_the_best_step_is_exported_where_one_is_kept(tiny_sft_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(tiny_sft_run, run)
    shutil.copytree(run / "checkpoints" / "step_60", run / "checkpoints" / "step_7")
    (run / "checkpoints" / "best").symlink_to("step_7")
    assert export(run, tmp_path / "out", dtype="float16").name == "step_7"
    with pytest.raises(FileNotFoundError, match="no folder"):
        export(tmp_path / "nowhere", tmp_path / "other", dtype="float16")


def test_the_card_tells_where_the_model_comes_from(tiny_sft_run: Path) -> None:
    card = model_card(tiny_sft_run / "checkpoints" / "step_60", "tiny", "bfloat16")
    assert card.startswith("---\nlibrary_name: transformers\n")
    assert "# tiny" in card and "| base model | fresh weights |" in card and "| step | 60 of 60 |" in card
    assert "| data | sft.jsonl |" in card and 'stage = "sft"' in card
    assert str(tiny_sft_run.parent) not in card  # where things lay on this machine is nobody's business


class Hub:
    """Stands in for `huggingface_hub`: remembers, or refuses."""

    def __init__(self, refusal: Exception | None = None) -> None:
        self.calls: list[Any] = []
        self.refusal = refusal

    def create_repo(self, name: str, **options: Any) -> str:
        if self.refusal is not None:
            raise self.refusal
        self.calls.append((name, options))
        return f"https://hub.example/{name}"

    def upload_folder(self, **options: Any) -> None:
        self.calls.append(options)


def test_pushing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub()
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=lambda: hub))
    assert push(tmp_path, "me/model", private=True) == "https://hub.example/me/model"
    assert hub.calls == [
        ("me/model", {"private": True, "exist_ok": True}),
        {"repo_id": "me/model", "folder_path": tmp_path},
    ]
    refusing = Hub(RuntimeError("401 Client Error\nlong page"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", SimpleNamespace(HfApi=lambda: refusing))
    with pytest.raises(OSError, match=r"not pushed to me/model: 401 Client Error; log in with .*hf upload"):
        push(tmp_path, "me/model", private=False)
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match="pip install huggingface_hub"):
        require_hub()
