"""The part of a document that is embedded: what is asked, what is answered, or all of it.

`curate/rows/part.py` is for steps that compare texts: there, prompt is all but the assistant's messages.

part_of(document, "prompt")     # of a conversation: the user's words; of a problem: its prompt
part_of(document, "answer")     # of a conversation: the assistant's words and calls; of a problem: its answer
"""

from __future__ import annotations

from typing import Literal

from foresail.curate.document import Document
from foresail.curate.rows.conversation import message_texts
from foresail.curate.rows.problem import problem_of
from foresail.curate.rows.row import MESSAGES

PartName = Literal["prompt", "answer", "all"]
PART = "prompt: what is asked; answer: what is answered; all: both. A document without turns has all alone"
SPEAKER = {"prompt": "user", "answer": "assistant"}


def part_of(document: Document, part: PartName) -> str:
    """Empty where a document has no such part."""
    row = document.row
    if row is None or (part == "all" and MESSAGES in row):
        return "" if part == "answer" else document.text
    if MESSAGES in row:
        messages = [message for message in row[MESSAGES] if message["role"] == SPEAKER[part]]
        return "\n\n".join(text for message in messages for text in message_texts(message) if text)
    answer = problem_of(document.id, row).answer
    return {"prompt": document.text, "answer": answer, "all": f"{document.text}\n\n{answer}".strip()}[part]
