"""Samples in the terminal: which two are shown, how they are shortened, and that they do no harm there."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from foresail.runlog.directory import RunDirectory
from foresail.runlog.display import Display
from foresail.runlog.samples import LONGEST_RESPONSE, pick_pair, sample_lines, shorten, show_samples


def row(problem: str, status: str, reward: float | None = None, **others: Any) -> dict[str, Any]:
    worth = (1.0 if status == "correct" else 0.0) if reward is None else reward
    return {
        "problem": problem,
        "status": status,
        "reward": worth,
        "prompt": f"what is {problem}?",
        "response": f"{problem} is {status}",
        "answer": "4",
        "finish": "stop",
        "loss_mask": [0, 1, 1, 1],
    } | others


def test_a_right_and_a_wrong_response_of_one_problem() -> None:
    rows = [row("a", "wrong"), row("b", "correct"), row("c", "wrong"), row("c", "correct"), row("b", "wrong")]
    assert [(found["problem"], found["status"]) for found in pick_pair(rows)] == [
        ("b", "correct"),
        ("b", "wrong"),
    ]


def test_else_the_best_and_the_worst() -> None:
    apart = [row("a", "wrong", -0.5), row("b", "correct"), row("c", "wrong", -1.0)]
    assert [found["problem"] for found in pick_pair(apart)] == ["b", "c"]
    partial = [row("a", "wrong", 0.2), row("b", "unparsable", 0.0), row("c", "wrong", 0.7)]
    assert [found["problem"] for found in pick_pair(partial)] == ["c", "b"]
    assert [found["problem"] for found in pick_pair([row("a", "wrong"), row("b", "wrong")])] == ["a"]


def test_failed_verdicts_are_no_samples() -> None:
    failed = row("a", "crashed") | {"reward": None}
    assert pick_pair([failed]) == [] == sample_lines([failed])
    assert [found["problem"] for found in pick_pair([failed, row("b", "wrong")])] == ["b"]


def test_lines_of_a_pair() -> None:
    cut = row("2+2", "wrong", -1.0, finish="length", response="let me think\n\nabout it")
    assert sample_lines([row("2+2", "correct"), cut]) == [
        "right, 3 tokens, reward 1",
        "  problem   what is 2+2?",
        "  response  2+2 is correct",
        "wrong, 3 tokens, cut at the limit, reward -1, answer 4",
        "  problem   what is 2+2?",
        "  response  let me think about it",
    ]


def test_long_responses_keep_their_beginning_and_more_of_their_end() -> None:
    text = "begin " + "x " * 5000 + "end"
    short = shorten(text, LONGEST_RESPONSE)
    assert short.startswith("begin x") and short.endswith("x end") and " … " in short
    assert len(short) <= LONGEST_RESPONSE + 3
    assert len(short.split(" … ")[1]) > len(short.split(" … ")[0])


@pytest.mark.parametrize(
    "hostile", ["\x1b[2J\x1b]0;title\x07", "a\rb\x00c\x9b31m", "\ud800", "\u202eback\u2066"]
)
def test_nothing_a_model_writes_reaches_the_terminal_as_a_command(hostile: str) -> None:
    assert all(letter.isprintable() for letter in shorten(hostile, 100))


def test_a_terminal_without_unicode_shows_what_it_can() -> None:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding="ascii")
    for terminal in (False, True):
        display = Display("rl", 20, console=Console(file=file, force_terminal=terminal, width=60))
        with display:
            display.show_samples(3, ["right, 3 tokens", "  response  π ≈ 3"])
        file.flush()
        assert b"response  ? ? 3" in raw.getvalue()


def test_plain_lines_are_one_line_each() -> None:
    file = io.StringIO()
    display = Display("rl", 20, console=Console(file=file, width=20))
    display.show_samples(3, sample_lines([row("2+2", "correct", response="word " * 500)]))
    lines = file.getvalue().splitlines()
    assert len(lines) == 3
    assert lines[0] == "sample of step 3: right, 3 tokens, reward 1"


def test_samples_of_a_run(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "rl", "")
    run.write_rollouts(1, [row("first", "correct"), row("first", "wrong")])
    run.write_rollouts(2, [row("second", "correct"), row("second", "wrong")])

    def shown(path: Path, step: int | None = None) -> str:
        file = io.StringIO()
        show_samples(path, step, Console(file=file, width=100))
        return file.getvalue()

    assert "second is wrong" in shown(run.path) and "second" not in shown(run.path, 1)
    with pytest.raises(FileNotFoundError, match="no rollouts of step 7; steps there: 1, 2"):
        shown(run.path, 7)
    with pytest.raises(ValueError, match="has no rollouts; give the folder of an RL run"):
        shown(RunDirectory.create(tmp_path / "sft", "").path)
