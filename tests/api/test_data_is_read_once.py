"""The look before a run and the run itself share what they read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny_world import HELD_OUT, rl_recipe, sft_recipe, write_lines

from foresail.api import stages
from foresail.api.stages import prepare
from foresail.data.mixtures import reader
from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.sources import HeldOut
from foresail.runlog.directory import RunDirectory
from foresail.train.stages.rl import run_rl
from foresail.train.stages.sft import run_sft


def count_calls(monkeypatch: pytest.MonkeyPatch, name: str) -> list[str]:
    """The sources that the reader's function is called with, from now on."""
    calls: list[str] = []
    function: Callable[..., Any] = getattr(reader, name)

    def counted(source: Any, *others: Any) -> Any:
        calls.append(source.source)
        return function(source, *others)

    monkeypatch.setattr(reader, name, counted)
    return calls


def logged(run: Path, name: str) -> list[float]:
    return [record[name] for record in RunDirectory(run).read_metrics() if record["step"]]


def test_problems_are_read_once(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the run is the one that reads for itself."""
    changes: dict[str, Any] = {"steps": 1, "eval": HeldOut(source=HELD_OUT), "eval_every": 1}
    alone = run_rl(rl_recipe(tiny_checkpoint, tmp_path / "alone", **changes))
    calls = count_calls(monkeypatch, "load_problems")
    recipe = rl_recipe(tiny_checkpoint, tmp_path / "looked", **changes)
    looked = prepare(recipe)()
    assert calls == [recipe.data[0].source, HELD_OUT]
    assert logged(looked.run, "actor/grad_norm") == logged(alone.run, "actor/grad_norm")


def test_conversations_are_read_once(
    tiny_tokenizer: Path, tiny_conversations: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = run_sft(sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path / "alone", steps=2))
    calls = count_calls(monkeypatch, "load_source")
    looked = prepare(sft_recipe(tiny_tokenizer, tiny_conversations, tmp_path / "looked", steps=2))()
    assert calls == [str(tiny_conversations)]
    assert logged(looked.run, "train/loss") == logged(alone.run, "train/loss")


def test_a_file_too_large_for_the_look_is_read_by_the_run(
    tiny_checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_calls(monkeypatch, "load_problems")
    monkeypatch.setattr(stages, "LARGEST_FILE", 10)
    rows = [{"prompt": f"7 +{number}", "answer": str((7 + number) % 10)} for number in range(10)]
    file = str(write_lines(tmp_path / "large.jsonl", rows))
    prepare(rl_recipe(tiny_checkpoint, tmp_path, steps=1, data=Problems(source=file)))()
    assert calls == [file]
