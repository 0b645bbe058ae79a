"""`data.examples`: conversations before every prompt, as turns."""

import json
from pathlib import Path
from typing import Any

import pytest

from foresail.data.problems.problems import load_problems
from foresail.recipe.tables.parts import Problems
from foresail.records import Problem


def write(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def load(tmp_path: Path, row: dict[str, Any], **settings: Any) -> Problem:
    examples = [{"prompt": "1+1?", "completion": "2"}, {"prompt": "2+2?", "completion": "4"}]
    source = write(tmp_path / "problems.jsonl", [row])
    shown = write(tmp_path / "examples.jsonl", examples)
    return load_problems(Problems(source=source, examples=shown, **settings))[0]


def turns(problem: Problem) -> list[str]:
    return [f"{message.role}: {message.content}" for message in problem.prompt]


def test_examples_come_before_the_question_and_after_the_system_message(tmp_path: Path) -> None:
    problem = load(tmp_path, {"prompt": "3+3?", "answer": 6}, system="Add.")
    assert turns(problem) == [
        "system: Add.",
        "user: 1+1?",
        "assistant: 2",
        "user: 2+2?",
        "assistant: 4",
        "user: 3+3?",
    ]
    assert problem.answer == "6"


def test_the_suffix_follows_every_question(tmp_path: Path) -> None:
    problem = load(tmp_path, {"prompt": "3+3?", "answer": 6}, suffix=" Now.")
    assert [turn for turn in turns(problem) if turn.startswith("user")] == [
        "user: 1+1? Now.",
        "user: 2+2? Now.",
        "user: 3+3? Now.",
    ]


def test_a_problem_with_its_own_system_message_takes_no_examples(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "Add."}, {"role": "user", "content": "3+3?"}]
    with pytest.raises(ValueError, match="brings its own system message; unset system and examples"):
        load(tmp_path, {"prompt": messages, "answer": 6})
