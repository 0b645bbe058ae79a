"""Reward functions before the first step: what cannot be loaded, what they print, which columns they want."""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

import pytest
from rich.console import Console
from rich.live import Live
from tiny_world import write_lines

from foresail.recipe.tables.parts import Problems
from foresail.recipe.tables.reward import Reward, Term
from foresail.records import Message, Problem, single_turn
from foresail.rewards import grading as grading_module
from foresail.rewards import pool as pool_module
from foresail.rewards.build import open_grading
from foresail.rewards.columns import check_columns
from foresail.rewards.print_log import PrintLog

PROBLEM = Problem(id="p", prompt=(Message(role="user", content="3+4?"),), answer="7")


def write(folder: Path, text: str, name: str = "my_rewards") -> str:
    (folder / f"{name}.py").write_text(textwrap.dedent(text))
    return f"{folder}/{name}.py:score"


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "import os\nimport no_such_kit.parts\ndef score(solution_str): ...",
            "ModuleNotFoundError: No module named 'no_such_kit' (my_rewards.py:2); pip install the package that "
            "has no_such_kit, or put no_such_kit.py beside the file",
        ),
        ("MODEL = open('nowhere.bin')\ndef score(solution_str): ...", "'nowhere.bin' (my_rewards.py:1)"),
        ("raise SystemExit(3)\ndef score(solution_str): ...", "SystemExit: 3 (my_rewards.py:1)"),
    ],
)
def test_what_cannot_be_loaded_is_told_with_file_and_line(
    tmp_path: Path, workers: int, text: str, words: str
) -> None:
    name = write(tmp_path, text)
    with pytest.raises(ValueError, match=re.escape(words)) as error:
        open_grading(Reward(grader=name, workers=workers))
    assert str(error.value).startswith("the grader cannot be loaded: ")


@pytest.mark.parametrize(("workers", "seconds"), [(0, 0.3), (1, 3.0)])  # a worker reads its own files first
def test_a_file_that_waits_for_ever_is_stopped_at_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int, seconds: float
) -> None:
    monkeypatch.setattr(grading_module, "LOADING_SECONDS", seconds)
    monkeypatch.setattr(pool_module, "LOADING_SECONDS", seconds)
    name = write(
        tmp_path,
        """
        import select
        try:
            import subprocess
            subprocess.run(["sleep", "600"])  # a server that does not answer
        except Exception:
            pass
        def score(solution_str): return 1.0
        """,
    )
    with pytest.raises(
        ValueError, match=rf"loading took longer than {seconds:g} s and was stopped \(my_rewards.py:5\)"
    ):
        open_grading(Reward(grader=name, workers=workers))


# Prints.

TALKATIVE = """
import sys
print("loaded", flush=True)
def score(solution_str):
    print("scored", solution_str)
    print("warned", file=sys.stderr)
    return 1.0
"""


@pytest.mark.parametrize("workers", [0, 1])
def test_prints_go_to_a_file_and_nowhere_else(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], workers: int
) -> None:
    name, log = write(tmp_path, TALKATIVE, f"talkative{workers}"), tmp_path / "run" / "reward.log"
    with open_grading(Reward(grader=name, workers=workers), prints=log) as grading:
        assert grading.submit(PROBLEM, single_turn("7")).result(300).status == "correct"
        assert grading.prints is not None
        assert grading.prints.news() == f"what reward functions print is in {log}"
        assert grading.prints.news() is None  # said once
    assert sorted(log.read_text().splitlines()) == ["loaded", "scored 7", "warned"]
    assert capfd.readouterr() == ("", "")


def test_where_nothing_is_printed_nothing_is_left(tmp_path: Path) -> None:
    name, log = write(tmp_path, "def score(solution_str): return 1.0"), tmp_path / "run" / "reward.log"
    with open_grading(Reward(grader=name, workers=0), prints=log) as grading:
        grading.submit(PROBLEM, single_turn("7"))
        assert grading.prints is not None and grading.prints.news() is None
    assert not log.parent.exists()
    with open_grading(Reward(terms=(Term(grader="exact"),)), prints=log) as grading:
        assert grading.prints is None


def test_the_live_view_is_drawn_while_a_function_prints(tmp_path: Path) -> None:
    """Its thread writes to the terminal, although this one's prints go elsewhere."""
    log = PrintLog(tmp_path / "reward.log")
    with (tmp_path / "terminal").open("w+", encoding="utf-8") as terminal:
        stdout, sys.stdout = sys.stdout, terminal
        try:
            with Live("the view", console=Console(force_terminal=True), auto_refresh=False) as live:
                with log.diverting():
                    print("from a reward")
                live.refresh()
        finally:
            sys.stdout = stdout
        terminal.seek(0)
        shown = terminal.read()
    assert "the view" in shown and "from a reward" not in shown
    assert (tmp_path / "reward.log").read_text() == "from a reward\n"


async def test_words(response: str, answer: str) -> float:
    print("in a coroutine")
    return 1.0


test_words.__test__ = False  # type: ignore[attr-defined]


def test_prints_of_coroutines_are_diverted_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "reward.log"
    with open_grading(Reward(grader=test_words, workers=0), prints=log) as grading:
        assert grading.submit(PROBLEM, single_turn("7")).result().status == "correct"
    assert log.read_text() == "in a coroutine\n" and capfd.readouterr().out == ""


# Columns.


@pytest.mark.parametrize("workers", [0, 1])
def test_columns_that_are_not_there_are_told_before_anything_else(tmp_path: Path, workers: int) -> None:
    name = write(
        tmp_path,
        """
        def helper(): ...

        def score(completions, solution, level, weight=1.0, **kwargs):
            return [1.0 for _ in completions]
        """,
    )
    rows = [{"prompt": "3+4?", "answer": "7", "level": 1}]
    data = Problems(source=str(write_lines(tmp_path / "some.jsonl", rows)))
    full = Problems(source=str(write_lines(tmp_path / "full.jsonl", [{**rows[0], "solution": "…"}])))
    terms = (Term(grader=name),)
    with open_grading(Reward(workers=workers, terms=terms)) as grading:
        required_columns = grading.traits.required_columns
    assert [(wish.function, wish.place, wish.columns) for wish in required_columns] == [
        ("score", "my_rewards.py:4", ("level", "solution"))
    ]
    check_columns(required_columns, "data", full)
    with pytest.raises(
        ValueError, match=re.escape("score (my_rewards.py:4) wants the column solution, and eval.")
    ):
        check_columns(required_columns, "eval", data)
