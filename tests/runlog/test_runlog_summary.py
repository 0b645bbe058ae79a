"""Summaries from files alone: mid-run, after a kill, and of folders that hold several runs."""

import io
import json
import sys

import pytest
from rich.console import Console

from foresail.runlog import summary as summary_module
from foresail.runlog.directory import RunDirectory
from foresail.runlog.summary import show, summarize

HELD_OUT = "val-core/arithmetic/acc/mean@1"


def make_rl(path):
    run = RunDirectory.create(path, 'stage = "rl"\n')
    for step, accuracy in enumerate((0.5, 0.9, 0.8, 0.9), start=1):
        metrics = {
            "rollout/accuracy": accuracy,
            "response_length/mean": 10.0 * step,
            "timing_s/step": 2.0,
            "timing_s/rollout": 1.5,
            "verdict/correct": accuracy,
            "verdict/timeout": None if step == 1 else 0.1,
        }
        run.append_metrics(step, {**metrics, HELD_OUT: 0.7} if step == 2 else metrics)
    run.checkpoint_path(4).mkdir(parents=True)
    return run


def make_sft(path):
    run = RunDirectory.create(path, 'stage = "sft"\n')
    for step in (1, 2):
        run.append_metrics(step, {"train/loss": 2.0 / step, "timing_s/step": 0.5})
    return run


def shown(path):
    file = io.StringIO()
    show(path, Console(file=file, width=100))
    return file.getvalue()


def test_summary_of_a_run(tmp_path):
    summary = summarize(make_rl(tmp_path / "rl").path)
    assert summary["steps"] == 4
    assert summary["last"]["response_length/mean"] == 40.0
    assert summary["last"][HELD_OUT] == 0.7, "the newest value there is, though of an earlier step"
    assert summary["best_accuracy"] == {
        "rollout/accuracy": {"value": 0.9, "step": 2},
        HELD_OUT: {"value": 0.7, "step": 2},
    }
    assert summary["seconds"] == {"step": 8.0, "rollout": 6.0}
    assert summary["verdicts"] == pytest.approx({"correct": 0.775, "timeout": 0.1})
    assert summary["checkpoints"] == [4]
    assert summary["runs"] == {} == summary["summary"]
    json.dumps(summary)


def test_a_continuous_reward_is_shown_with_its_terms_and_without_an_accuracy_of_nothing(tmp_path):
    run = RunDirectory.create(tmp_path / "own", "stage = 'rl'\n")
    for step in (1, 2):
        own = {"critic/rewards/mean": 0.4, "critic/score/mean": 0.3, "rollout/accuracy": 0.0}
        run.append_metrics(step, {**own, "reward/brevity/mean": step / 8})
    words = " ".join(shown(run.path).split())
    assert "reward 0.40" in words and "reward, brevity 0.25" in words and "ccuracy" not in words


def test_killed_run_is_summed_up_to_its_last_whole_line(tmp_path):
    run = make_rl(tmp_path / "rl")
    with run.metrics.path.open("ab") as file:
        file.write(b'{"step": 5, "rollout/accu')
    assert summarize(run.path)["steps"] == 4


def test_run_without_a_step_yet(tmp_path):
    run = RunDirectory.create(tmp_path / "rl", "")
    assert summarize(run.path)["steps"] == 0
    text = shown(run.path)
    assert "none yet" in text
    assert not (run.path / "curves.png").exists()


def test_show_prints_and_plots_from_the_files_alone(tmp_path):
    run = make_rl(tmp_path / "rl")
    text = shown(run.path)
    assert "\x1b" not in text
    words = " ".join(text.split())
    assert f"{HELD_OUT} 0.7, best 0.7 at step 2" in words
    assert "accuracy 0.90" in words
    assert "time, step 0:08" in words
    assert "verdicts, timeout 10.0 %" in words
    assert "checkpoints step_4" in words
    assert (run.path / "curves.png").stat().st_size > 10_000


def test_folder_with_stages_is_shown_stage_by_stage(tmp_path):
    quickstart = tmp_path / "quickstart"
    make_rl(quickstart / "rl")
    make_sft(quickstart / "sft")
    (quickstart / "tokenizer").mkdir()
    (quickstart / "summary.json").write_text(json.dumps({"accuracy": {"before": 0.45, "after": 0.99}}))
    summary = summarize(quickstart)
    assert list(summary["runs"]) == ["sft", "rl"]
    assert summary["runs"]["rl"]["steps"] == 4
    words = " ".join(shown(quickstart).split())
    assert words.index("quickstart/sft steps 2") < words.index("quickstart/rl steps 4")
    assert "accuracy before 0.45 accuracy after 0.99" in words
    pictures = sorted(str(path.relative_to(quickstart)) for path in quickstart.rglob("*.png"))
    assert pictures == ["curves.png", "rl/curves.png", "sft/curves.png"]


def test_samples_are_shown_line_by_line(tmp_path):
    run = make_sft(tmp_path / "sft")
    samples = [{"problem": "7 +5", "after": "12"}, {"problem": "1 +1", "after": "2"}]
    (run.path / "summary.json").write_text(json.dumps({"samples": samples}))
    text = shown(run.path)
    assert "samples 1 problem 7 +5 samples 1 after 12 samples 2 problem 1 +1" in " ".join(text.split())
    assert "{" not in text


def test_the_picture_of_a_folder_is_that_of_rl(tmp_path, monkeypatch):
    """Other runs beside it, such as the quickstart's `longer`, have their own."""
    saved = {}
    monkeypatch.setattr(summary_module, "plot_curves", lambda metrics, title: (len(metrics), title))
    monkeypatch.setattr(summary_module, "save_figure", lambda figure, path: saved.update({path: figure}))
    make_rl(tmp_path / "demo" / "rl")
    for name in ("longer", "sft"):
        make_sft(tmp_path / "demo" / name)
    shown(tmp_path / "demo")
    assert saved[tmp_path / "demo" / "curves.png"] == (4, "demo")
    assert saved[tmp_path / "demo" / "longer" / "curves.png"] == (2, "longer")


def test_broken_summary_file_hides_nothing_else(tmp_path):
    run = make_sft(tmp_path / "sft")
    (run.path / "summary.json").write_text('{"accura')
    words = " ".join(shown(run.path).split())
    assert "steps 2" in words
    assert "is not JSON" in words


def test_missing_matplotlib_costs_only_the_picture(tmp_path, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    text = shown(make_sft(tmp_path / "sft").path)
    assert "no curves drawn: plots need matplotlib" in text
    assert "steps" in text


def test_folder_that_is_no_run(tmp_path):
    with pytest.raises(ValueError, match=r"is no run: it has neither recipe\.toml nor metrics\.jsonl"):
        summarize(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        show(tmp_path / "nowhere")


def test_importing_the_room_brings_no_torch_matplotlib_or_tensorboard():
    import subprocess
    from pathlib import Path

    code = (
        "import foresail.runlog.summary, foresail.runlog.trackers, sys; "
        "print(sorted({'torch', 'matplotlib', 'tensorboard', 'wandb', 'numpy'} & set(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert result.stdout == "[]\n", result.stderr
