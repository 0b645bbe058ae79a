"""A problem as a row: its columns as they came; those that the recipe names become prompt and answer.

problem_row({"question": "2+2?", "gold": 4}, "arith:1", "arith", answer_key="gold")
    -> {"question": "2+2?", "answer": 4, "data_source": "arith"}

A row with a column `messages` is a conversation to all steps, so a problem's becomes `source_messages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foresail.data.problems.problems import to_problem
from foresail.data.rows import Row
from foresail.recipe.tables.inputs import reach
from foresail.records import Problem

SOURCE = "data_source"
SET_ASIDE = {"messages": "source_messages"}


def problem_row(
    columns: Mapping[str, Any], place: str, source: str, prompt_key: str | None, answer_key: str | None
) -> dict[str, Any]:
    """Raises ValueError for a row that is no problem."""
    row = {SET_ASIDE.get(name, name): value for name, value in columns.items()}
    for key, name in ((prompt_key, "prompt"), (answer_key, "answer")):
        if key is not None:
            value = reach(columns, key, None)
            if value is None:
                raise ValueError(f"{place}: {name}_key {key!r} is not there, or null")
            row.pop(SET_ASIDE.get(key, key), None)
            row[name] = value
    row.setdefault(SOURCE, source)
    to_problem(Row(place=place, columns=row), place, source, None, None, graded=False)
    return row


def problem_of(id: str, row: Mapping[str, Any]) -> Problem:
    """The problem as `foresail rl` reads it; without an answer, its answer is empty."""
    return to_problem(Row(place=id, columns=row), id, str(row[SOURCE]), None, None, graded=False)


def problem_text(problem: Problem) -> str:
    """What steps on text read: what the model is asked."""
    return "\n\n".join(message.content for message in problem.prompt)
