"""A conversation as a row, whatever form it had: messages, tools, and its other columns.

conversation_row({"instruction": "Add.", "input": "2 2", "output": "4", "source": "made"}, place)
    -> {"messages": [{"role": "user", "content": "Add.\n\n2 2"}, {"role": "assistant", "content": "4"}],
        "source": "made"}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from foresail.data.chats.conversations import FORMS, to_conversation
from foresail.data.chats.messages import to_messages
from foresail.data.chats.tool_calls import read_tools
from foresail.data.rows import Row, choose_form
from foresail.records import Message

BESIDE_FORM = {("instruction", "output"): ("input", "history"), ("text",): ()}


def conversation_row(columns: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Raises ValueError for a row that is no conversation."""
    row = Row(place=place, columns=columns)
    form = choose_form(row, FORMS, "conversation")
    if form == ("text",):
        raise ValueError(f'{place}: plain text without turns; set holds = "documents" for it')
    messages = to_conversation(row)
    tools = read_tools(columns.get("tools"), f"{place}: tools")
    used = {*form, *BESIDE_FORM.get(form, ()), "system", "tools"}
    others = {name: value for name, value in columns.items() if name not in used}
    return {"messages": [*map(message_row, messages)], **({"tools": [*tools]} if tools else {}), **others}


def message_row(message: Message) -> dict[str, Any]:
    row = {"role": message.role, "content": message.content, **message.extra}
    return row if message.train is None else row | {"train": message.train}


def messages_of(row: Mapping[str, Any]) -> tuple[Message, ...]:
    """messages_of({"messages": [{"role": "user", "content": "2+2?"}]}) -> (Message(user, "2+2?"),)"""
    return to_messages(row["messages"], "messages")


def conversation_text(messages: Sequence[Mapping[str, Any]]) -> str:
    """What steps on text read: the contents, with tool calls as JSON."""
    return "\n\n".join(text for message in messages for text in message_texts(message) if text)


def message_texts(message: Mapping[str, Any]) -> list[str]:
    calls = [call["function"] for call in message.get("tool_calls", ())]
    return [message["content"], *(json.dumps(call, ensure_ascii=False, sort_keys=True) for call in calls)]
