"""Reward functions looked at before a run, without running them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from foresail.recipe.reward_function import check_function, recognise


@pytest.mark.parametrize(
    ("names", "shape"),
    [
        (("data_source", "solution_str", "ground_truth", "extra_info"), "verl"),
        (("solution_str", "ground_truth"), "verl"),
        (("prompts", "completions"), "trl"),
        (("completions",), "trl"),
        (("completions", "answer"), "trl"),
        (("prompts", "completions", "completion_ids", "solution"), "trl"),
        (("queries", "prompts", "labels"), "openrlhf"),
        (("prompt", "completions", "prompt_ids", "completion_ids", "answer"), "areal"),
        (("prompt", "completions"), "areal"),
        (("response", "answer"), "plain"),
        (("text", "gold", "level"), "plain"),
        (("response",), None),
        (("answer",), None),
        ((), None),
    ],
)
def test_shapes_are_told_by_names(names: tuple[str, ...], shape: str | None) -> None:
    assert recognise(names) == shape


def look(folder: Path, text: str, function: str = "score") -> str:
    """The refusals of a file with this text, in one string."""
    path = folder / "my_rewards.py"
    path.write_text(text)
    return "\n".join(check_function("reward.grader", f"{path}:{function}"))


@pytest.mark.parametrize(
    "text",
    [
        "def score(completions, **kwargs): ...",
        "async def score(solution_str): ...",
        "def score(*, queries, prompts, labels): ...",
        "from elsewhere import score",
        "from elsewhere import f as score",
        "from elsewhere import *",
        "score = make()",
        "if True:\n    def score(a): ...",
        "class score: ...",
        "@wrapped\ndef score(a, b): ...",
        "raise SystemExit  # never run\ndef score(solution_str): ...",
    ],
)
def test_functions_that_may_be_used(tmp_path: Path, text: str) -> None:
    assert look(tmp_path, text) == ""


def test_what_is_refused_and_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no function score in it; did you mean scores?" in look(
        tmp_path, "def scores(completions): ..."
    )
    assert "it defines none" in look(tmp_path, "x = 1")
    assert "is not valid Python" in look(tmp_path, "def score(:")
    unknown = look(tmp_path, "def score(response, weight): ...")
    assert "score(response, weight) has none of the known shapes" in unknown and "solution_str" in unknown
    monkeypatch.chdir(tmp_path)
    (missing,) = check_function("reward.grader", "nowhere.py:score")
    assert missing == (
        f"reward.grader nowhere.py:score: the file nowhere.py does not exist (looked in {tmp_path}); check the path"
    )
    (missing,) = check_function("reward.grader", "no_such_module:score")
    assert "there is no module no_such_module here" in missing and "a.py:score" in missing


def test_modules_where_the_command_runs_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "looked_at").mkdir()
    (tmp_path / "looked_at" / "scores.py").write_text("def score(solution_str): ...\ndef bad(x): ...")
    (tmp_path / "looked_at" / "__init__.py").write_text("def score(completions): ...")
    monkeypatch.chdir(tmp_path)
    assert (
        list(check_function("k", "looked_at.scores:score"))
        == list(check_function("k", "looked_at:score"))
        == []
    )
    assert "known shapes" in next(check_function("k", "looked_at.scores:bad"))
    assert "looked_at.scores" not in sys.modules
    assert "there is no function" in next(check_function("k", "json:score"))  # installed
