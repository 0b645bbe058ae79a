"""The agent's quickstart in small: the same way, with numbers that take seconds."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from foresail.quickstart import agent as quickstart_agent
from foresail.quickstart.agent import run_quickstart_agent
from foresail.quickstart.report import report_agent
from foresail.recipe.tables.dynamic_sampling import DynamicSampling
from foresail.runlog.directory import RunDirectory
from foresail.tokenizer.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory):
    folder, notes = tmp_path_factory.mktemp("quickstart") / "agent", []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(quickstart_agent, "NUM_TRAIN", 200)
        patch.setattr(quickstart_agent, "NUM_TEST", 6)
        sft, rl = quickstart_agent.sft_recipe, quickstart_agent.rl_recipe
        changes = {"steps": 2, "prompts_per_step": 4, "eval_every": 1}
        changes["dynamic_sampling"] = DynamicSampling(enabled=False)  # so short a start has nothing right
        patch.setattr(
            quickstart_agent, "sft_recipe", lambda *given: sft(*given).model_copy(update={"steps": 30})
        )
        patch.setattr(quickstart_agent, "rl_recipe", lambda *given: rl(*given).model_copy(update=changes))
        summary = run_quickstart_agent(folder, seed=3, note=notes.append)
    return folder, summary, notes


def test_the_summary_holds_accuracy_and_an_episode_before_and_after(small) -> None:
    folder, summary, notes = small
    assert json.loads((folder / "summary.json").read_text()) == summary
    assert 0 <= summary["before"] <= 1 and 0 <= summary["after"] <= 1
    for when, step in (("before", 1), ("after", 2)):
        assert f"step {step}: " in summary["episodes"][when][0]
        assert any(line.startswith("turn 1") for line in summary["episodes"][when])
    assert len(notes) == 3


def test_examples_teach_both_habits_and_no_search_result_is_learned(small) -> None:
    folder, _, _ = small
    rows = [json.loads(line) for line in (folder / "data" / "sft.jsonl").read_text().splitlines()]
    lengths = [len(row["messages"]) for row in rows]
    assert set(lengths) == {4, 6} and 0.6 < lengths.count(4) / len(lengths) < 0.9
    tokenizer = Tokenizer.load(folder / "tokenizer")
    run = RunDirectory(folder / "rl")
    for row in run.read_rollouts(1):
        world = [number for number, mask in zip(row["ids"], row["loss_mask"], strict=True) if not mask]
        assert tokenizer.decode(world).count("<|tool|>") == len(row.get("turns", [None])) - 1


def test_the_report_tells_it_all(small) -> None:
    folder, summary, _ = small
    told = io.StringIO()
    report_agent(Path(folder), summary, Console(file=told, width=200), "foresail")
    for words in (
        "held-out questions answered right",
        "an episode before",
        "an episode after",
        "credit.kind=pbsd",
    ):
        assert words in told.getvalue()
    assert (folder / "curves.png").stat().st_size


def test_the_same_command_finds_it_finished(small) -> None:
    folder, summary, _ = small
    assert RunDirectory(folder / "rl").read_metrics()[-1]["step"] == 2
    assert Path(summary["checkpoints"]["rl"]).name == "step_2"
