"""New answers to rewritten questions, of conversations with one question and one answer.

regenerate(variants, ask)        # each variant has the new answer, or is dropped
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from foresail.chat.endpoint import Refused
from foresail.curate.asking.asking import Asking
from foresail.curate.document import Document, Drop
from foresail.curate.lineage.section import MADE
from foresail.curate.rewriting.variant import Variant
from foresail.curate.rows.conversation import messages_of
from foresail.curate.rows.row import MESSAGES, with_row

ONE_ANSWER = (["user", "assistant"], ["system", "user", "assistant"])


def regenerate(variants: Sequence[Variant], ask: Asking) -> None:
    """Problems stay as they are."""
    conversations: list[tuple[Variant, Document, dict[str, Any]]] = []
    for variant in variants:
        document = variant.document
        if document is None or document.row is None or MESSAGES not in document.row:
            continue
        variant.drop = unanswerable(document.row)
        if variant.drop is None:
            conversations.append((variant, document, document.row))
    prompts = [messages_of(row)[:-1] for _, _, row in conversations]
    answers = ask(prompts, [f"{variant.id}#answer" for variant, _, _ in conversations])
    for (variant, document, row), answer in zip(conversations, answers, strict=True):
        if isinstance(answer, Refused):
            variant.drop = Drop("refused", answer.detail[:300])
        elif not answer.strip():
            variant.drop = Drop("empty", "the regenerated answer")
        else:
            made = document.metadata[MADE] | {"answer": "regenerated"}
            messages = [*row[MESSAGES][:-1], {"role": "assistant", "content": answer.strip()}]
            variant.document = with_row(
                replace(document, metadata={**document.metadata, MADE: made}), {**row, MESSAGES: messages}
            )


def unanswerable(row: Mapping[str, Any]) -> Drop | None:
    """Why no new answer can be asked for."""
    roles = [message["role"] for message in row[MESSAGES]]
    if row.get("tools") or "tool" in roles or any("tool_calls" in message for message in row[MESSAGES]):
        return Drop("has_tools", "its answer is not regenerated")
    return None if roles in ONE_ANSWER else Drop("several_turns", ", ".join(roles)[:100])
