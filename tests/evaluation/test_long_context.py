"""Long-context tasks asked of a model: what is counted, kept, drawn and logged."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from rich.console import Console

from foresail.commands.long_context import long_context as run_command
from foresail.data.long_context.filler import made_filler
from foresail.data.long_context.tasks import TASKS
from foresail.evaluation import long_context
from foresail.evaluation.long_context import LongAnswer, ask, long_context_metrics
from foresail.evaluation.long_context_plot import to_heat_maps
from foresail.evaluation.long_context_results import show_answers, summarise
from foresail.model.decoder import Decoder
from foresail.model.hf import build_model
from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.long_context import LongContext, LongTask
from foresail.runlog.canvas import CORAL, GOLD, TEAL
from foresail.runlog.heat_map import blend
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe
from foresail.train.learner import save_weights

SETTINGS = LongContext(lengths=(300, 400), tasks=("niah_single", "vt"), depths=2, per_cell=2)


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_bpe([" ".join(islice(made_filler(Random(0)), 200))], vocab_size=320)


@pytest.fixture(scope="module")
def model(tokenizer: Tokenizer) -> Decoder:
    shape = ModelShape(
        vocab_size=tokenizer.vocab_size,
        hidden_size=16,
        intermediate_size=16,
        num_layers=1,
        num_heads=1,
        num_kv_heads=1,
        head_dim=16,
        max_context=400,
    )
    return build_model(shape, seed=0)


def answer(task: str, length: int, depth: float | None, score: float) -> LongAnswer:
    return LongAnswer(task=task, length=length, depth=depth, answers=("7",), output="", score=score)


ANSWERS = [
    answer("niah_single", 512, 0.0, 1),
    answer("niah_single", 512, 1.0, 0.5),
    answer("niah_single", 1024, 0.0, 1),
    answer("niah_single", 1024, 1.0, 0),
    answer("vt", 512, None, 0.2),
    answer("vt", 1024, None, 0.4),
]


def test_a_model_that_finds_every_needle_scores_one_and_a_blind_one_zero(
    model: Decoder, tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is replaced by a reader of the prompt, who answers what a perfect model would."""
    seen: list[Any] = []

    def read(requests: Sequence[Any]) -> list[Any]:
        seen.extend(requests)
        return [
            SimpleNamespace(request=request, ids=perfect(tokenizer, request.prompt)) for request in requests
        ]

    monkeypatch.setattr(
        long_context, "build_fleet", lambda *args, **kw: SimpleNamespace(generate=read, at_work=nullcontext)
    )
    settings = SETTINGS.model_copy(update={"tasks": ("niah_single",)})
    metrics = long_context_metrics(model, tokenizer, settings, seed=0)
    assert metrics == {"long_context/niah_single/300": 1, "long_context/niah_single/400": 1}
    assert [len(request.prompt) + request.sampling.max_new_tokens for request in seen] == [300] * 4 + [
        400
    ] * 4
    monkeypatch.undo()
    blind = long_context_metrics(model, tokenizer, SETTINGS, seed=0)
    assert [*blind] == [f"long_context/{task}/{length}" for task in SETTINGS.tasks for length in (300, 400)]
    assert {*blind.values()} == {0}


def perfect(tokenizer: Tokenizer, prompt: Sequence[int]) -> list[int]:
    return tokenizer.encode(" ".join(re.findall(r" is (\d+)\.", tokenizer.decode(prompt))))


def test_cells_tasks_and_lengths_are_summed_up_with_intervals() -> None:
    summary = summarise(ANSWERS)
    niah = summary["tasks"]["niah_single"]
    assert niah["all"]["value"] == 0.625 and niah["512"]["value"] == 0.75 and niah["1024"]["value"] == 0.5
    assert niah["1024"]["low"] < 0.5 < niah["1024"]["high"] and niah["1024"]["problems"] == 2
    assert [cell["value"] for cell in summary["cells"]] == [1, 0.5, 1, 0, 0.2, 0.4]


def test_heat_maps_have_depths_down_and_lengths_across() -> None:
    niah, vt = to_heat_maps(ANSWERS)
    assert niah.rows == ("0%", "100%") and niah.columns == ("512", "1024")
    assert niah.shares == ((1, 1), (0.5, 0))
    assert vt.rows == ("all",) and vt.shares == ((0.2, 0.4),)


def test_colours_run_from_none_to_all() -> None:
    assert [blend(share) for share in (0, 0.5, 1)] == [CORAL, GOLD, TEAL]
    assert blend(-1) == CORAL and blend(2) == TEAL


def test_the_terminal_shows_every_cell() -> None:
    console = Console(record=True, width=80, file=None)
    with console.capture() as shown:
        console.print(show_answers(ANSWERS))
    assert "niah_single: 62.5%, 95 % interval" in shown.get()
    assert re.findall(r"100%\s+50\s+0\b", shown.get()) and re.findall(r"all\s+20\s+40\b", shown.get())


def test_the_command_keeps_answers_figures_and_picture(
    model: Decoder, tokenizer: Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_weights(model, tokenizer, tmp_path / "model")
    output = tmp_path / "out"
    run_command(tmp_path / "model", lengths="300", depths=1, per_cell=2, device="cpu", output=output)
    assert "niah_single: 0.0%" in capsys.readouterr().out
    lines = [json.loads(line) for line in (tmp_path / "out/records.jsonl").read_text().splitlines()]
    assert [(line["length"], line["depth"], line["score"]) for line in lines] == [(300, 0.5, 0)] * 2
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["tasks"]["niah_single"]["300"]["problems"] == 2 and summary["settings"]["depths"] == 1
    assert (tmp_path / "out/heat-map.png").stat().st_size > 1000


def test_a_length_beyond_the_context_is_refused(model: Decoder, tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="length 500 exceeds the model's context of 400"):
        ask(model, tokenizer, LongContext(lengths=(300, 500)), seed=0)
    with pytest.raises(ValueError, match="leaves no room for a prompt"):
        ask(model, tokenizer, LongContext(lengths=(300,)), seed=0, max_new_tokens=300)


def test_the_recipe_knows_every_task() -> None:
    assert get_args(LongTask) == TASKS
    with pytest.raises(ValueError, match=r"try \[512, 1024\]"):
        LongContext(lengths=())


def test_answers_are_the_same_whatever_else_is_asked(model: Decoder, tokenizer: Tokenizer) -> None:
    alone = ask(model, tokenizer, LongContext(lengths=(300,), depths=1, per_cell=1), seed=3)
    among = ask(model, tokenizer, LongContext(lengths=(400, 300), depths=1, per_cell=1), seed=3)
    assert alone == among[1:]
