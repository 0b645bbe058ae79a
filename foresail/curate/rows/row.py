"""Conversations and problems as documents: `row` is the row itself, `text` what steps on text read of it.

with_row(document, document.row | {"level": 3})     # a step that changes a row keeps the text in step with it
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foresail.curate.document import Document, Drop
from foresail.curate.rows.conversation import conversation_row, conversation_text
from foresail.curate.rows.holds import Held
from foresail.curate.rows.problem import problem_of, problem_row, problem_text

MESSAGES = "messages"


def read_row(
    columns: Mapping[str, Any],
    id: str,
    source: str,
    held: Held,
    prompt_key: str | None = None,
    answer_key: str | None = None,
) -> Document | Drop:
    try:
        if held == "conversations":
            row = conversation_row(columns, id)
        else:
            row = problem_row(columns, id, source, prompt_key, answer_key)
    except ValueError as error:
        return Drop(f"no_{held[:-1]}", str(error).removeprefix(f"{id}: ")[:300])
    return with_row(Document(id=id), row)


def with_row(document: Document, row: dict[str, Any]) -> Document:
    return replace(document, row=row, text=text_of(document.id, row))


def text_of(id: str, row: Mapping[str, Any]) -> str:
    return conversation_text(row[MESSAGES]) if MESSAGES in row else problem_text(problem_of(id, row))


def sink_row(document: Document) -> dict[str, Any]:
    """As `foresail sft` and `foresail rl` read it: the row, its id, and what steps measured."""
    assert document.row is not None
    row = {"id": document.id} | {name: value for name, value in document.row.items() if name != "id"}
    return row | {"metadata": {**document.metadata}} if document.metadata else row
