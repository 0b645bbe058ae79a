"""The part of a document that a step looks at: all of it, what a model is asked, or what it answers.

    part_texts(document, "prompt") -> ["Be brief.", "2+2?"]          of a conversation: a text for each message
    part_texts(document, "answer") -> ["4"]

A plain document has one part, and a problem's text is its prompt: both are the same for every choice but that a
problem has no answer to look at.
"""

from __future__ import annotations

from typing import Literal

from foresail.curate.document import Document
from foresail.curate.rows.conversation import message_texts
from foresail.curate.rows.row import MESSAGES

RowPart = Literal["all", "prompt", "answer"]
PART = "of a conversation: all messages, prompt (all but the assistant's), or answer (the assistant's)"


def part_texts(document: Document, part: RowPart) -> list[str]:
    """Without empty ones."""
    row = document.row
    if row is None or MESSAGES not in row:
        return [document.text] if document.text else []
    return [
        text
        for message in row[MESSAGES]
        if part == "all" or (message["role"] == "assistant") == (part == "answer")
        for text in message_texts(message)
        if text
    ]


def part_text(document: Document, part: RowPart) -> str:
    """The document's text is that of all parts."""
    return document.text if part == "all" else "\n\n".join(part_texts(document, part))
