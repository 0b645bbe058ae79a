"""What of a document is judged: its text, or a conversation's last answer in its context.

judged(Document(id="web:1", text="Once …"), 6000) -> Judged(response="Once …")
judged(conversation, 6000)                        -> Judged(prompt=all before it, response=the last answer)
"""

from __future__ import annotations

from foresail.curate.document import Document
from foresail.curate.quality.text_windows import windows
from foresail.curate.rows.conversation import messages_of
from foresail.curate.rows.row import MESSAGES
from foresail.records import Message
from foresail.rewards.judging.question import Judged, message_text


def judged(document: Document, max_chars: int) -> Judged | None:
    """None where there is nothing to judge: an empty text, a conversation without an answer."""
    if document.row is not None and MESSAGES in document.row:
        return judged_answer(messages_of(document.row))
    return Judged(response=windows(document.text, max_chars)) if document.text.strip() else None


def judged_answer(messages: tuple[Message, ...]) -> Judged | None:
    last = max((n for n, message in enumerate(messages) if message.role == "assistant"), default=0)
    if last == 0 or not (response := message_text(messages[last])):
        return None
    return Judged(prompt=messages[:last], response=response)
