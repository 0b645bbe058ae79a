"""A conversation up to its last good turn.

cut_before(row, 5)    # messages 0 to 3, where 3 is an answer to the user; None: no answer is left
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from foresail.curate.document import Document
from foresail.curate.rows.row import MESSAGES, with_row

CUT = "cut to the last good answer before it, if there is one"


def cut_before(row: Mapping[str, Any], place: int) -> dict[str, Any] | None:
    """Without message number `place`, what follows it, and questions that have lost their answer."""
    messages = row[MESSAGES]
    for end in range(min(place, len(messages)), 0, -1):
        last = messages[end - 1]
        if last["role"] == "assistant" and not last.get("tool_calls"):
            return {**row, MESSAGES: messages[:end]}
    return None


def cut_document(document: Document, place: int, reason: str) -> Document | None:
    """The metadata `cut` says why."""
    assert document.row is not None
    row = cut_before(document.row, place)
    if row is None:
        return None
    return replace(with_row(document, row), metadata=document.metadata | {"cut": reason})
