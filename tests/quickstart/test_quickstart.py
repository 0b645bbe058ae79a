"""The quickstart in small: the same way, with a model and numbers that take seconds."""

from __future__ import annotations

import io
import json
import pickle
import shlex
from pathlib import Path

import pytest
from rich.console import Console

from foresail.quickstart import reasoning as quickstart
from foresail.quickstart import stages
from foresail.quickstart.reasoning import choose_folder, run_quickstart
from foresail.quickstart.report import report
from foresail.quickstart.stages import Interrupted
from foresail.train.session import Session


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory):
    """A finished quickstart of few steps on few problems, and what it was told to say."""
    folder, notes = tmp_path_factory.mktemp("quickstart") / "run", []
    with pytest.MonkeyPatch.context() as patch:
        shrink(patch)
        summary = run_quickstart(folder, seed=3, note=notes.append)
    return folder, summary, notes


def shrink(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(quickstart, "NUM_TRAIN", 300)
    patch.setattr(quickstart, "NUM_TEST", 20)
    sft, rl = quickstart.sft_recipe, quickstart.rl_recipe
    patch.setattr(quickstart, "sft_recipe", lambda *given: sft(*given).model_copy(update={"steps": 80}))
    patch.setattr(
        quickstart,
        "rl_recipe",
        lambda *given: rl(*given).model_copy(update={"steps": 2, "prompts_per_step": 8, "eval_every": 1}),
    )


def test_the_summary_holds_seconds_by_part_and_accuracy_before_and_after(small) -> None:
    folder, summary, notes = small
    assert json.loads((folder / "summary.json").read_text()) == summary
    parts = {"problems and tokenizer", "sft", "evaluate before", "rl", "evaluate after", "total"}
    assert summary["seconds"].keys() == parts
    assert summary["seconds"]["total"] >= max(summary["seconds"][part] for part in parts - {"total"})
    for when in ("before", "after"):
        assert summary[when].keys() == {"greedy", "mean@8", "response_length"}
        assert 0 <= summary[when]["mean@8"] <= 1
    assert len(summary["samples"]) == 2
    assert len(notes) == 3


def test_every_part_leaves_its_files(small) -> None:
    folder, summary, _ = small
    for name in ("data/train.jsonl", "data/test.jsonl", "data/sft.jsonl", "tokenizer/tokenizer.json"):
        assert (folder / name).stat().st_size
    for stage in ("sft", "rl"):
        assert (folder / stage / "recipe.toml").exists()
        assert (Path(summary["checkpoints"][stage]) / "model.safetensors").exists()
        assert len((folder / stage / "eval" / "records.jsonl").read_text().splitlines()) == 20


def test_the_cold_start_shows_both_habits(small) -> None:
    rows = [json.loads(line) for line in (small[0] / "data" / "sft.jsonl").read_text().splitlines()]
    share = sum(row["completion"].startswith(r"\boxed") for row in rows) / len(rows)
    assert share == pytest.approx(quickstart.DIRECT_SHARE, abs=0.1)


def test_the_report_shows_the_table_the_samples_and_commands_that_parse(small) -> None:
    folder, summary, _ = small
    out = io.StringIO()
    report(folder, summary, Console(file=out, width=200), "foresail")
    text = out.getvalue()
    assert "\x1b" not in text
    assert f"{summary['after']['mean@8']:.1%}" in text and summary["samples"][0]["problem"] in text
    assert (folder / "curves.png").stat().st_size
    commands = [line.strip() for line in text.splitlines() if line.strip().startswith("foresail ")]
    assert [shlex.split(command)[1] for command in commands] == ["show", "eval", "rl"]


def test_the_same_command_goes_on_after_an_interruption(tmp_path: Path, monkeypatch, small) -> None:
    """Asked to stop in the midst of SFT, then run again: all ends as if it had not been stopped."""
    shrink(monkeypatch)
    folder, end_step = tmp_path / "run", Session.end_step

    def ask_to_stop(session: Session, progress, metrics) -> None:
        end_step(session, progress, metrics)
        session.stop.requested = progress.step == 30

    with monkeypatch.context() as patch:
        patch.setattr(Session, "end_step", ask_to_stop)
        with pytest.raises(Interrupted, match="stopped during sft; the same command goes on"):
            run_quickstart(folder, seed=3, note=lambda text: None)
    assert choose_folder(folder) == folder
    summary = run_quickstart(folder, seed=3, note=lambda text: None)
    for name in ("before", "after", "samples"):
        assert summary[name] == small[1][name]


def test_finished_stages_are_skipped(small, monkeypatch) -> None:
    shrink(monkeypatch)
    monkeypatch.setattr(stages, "stage_function", None)
    summary = run_quickstart(small[0], seed=3, note=lambda text: None)
    assert {**summary, "seconds": None} == {**small[1], "seconds": None}


def test_an_interruption_comes_whole_out_of_another_process() -> None:
    assert str(pickle.loads(pickle.dumps(Interrupted("rl")))) == "stopped during rl; the same command goes on"


def test_another_seed_is_refused_in_a_folder_under_way(small, monkeypatch) -> None:
    shrink(monkeypatch)
    with pytest.raises(ValueError, match=r"run\.seed"):
        run_quickstart(small[0], seed=4, note=lambda text: None)


def test_a_finished_folder_is_left_alone(small) -> None:
    folder = small[0]
    assert choose_folder(folder) == folder.with_name("run-2")
    assert choose_folder(folder.with_name("fresh")) == folder.with_name("fresh")
