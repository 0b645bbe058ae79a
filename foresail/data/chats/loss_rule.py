"""Which messages of a conversation have a loss: by role and turn, unless the row itself says.

learnt_messages((system, user, assistant), roles=("assistant",), turns="all") -> [False, False, True]
"""

from __future__ import annotations

from collections.abc import Sequence

from foresail.records import Message


def learnt_messages(messages: Sequence[Message], *, roles: Sequence[str], turns: str) -> list[bool]:
    """`turns` is "all", or "last": only messages after the last user message (all if there is none)."""
    users = [index for index, message in enumerate(messages) if message.role == "user"]
    first = users[-1] if users and turns == "last" else 0
    return [
        (index >= first and has_role(message, roles)) if message.train is None else message.train
        for index, message in enumerate(messages)
    ]


def has_role(message: Message, roles: Sequence[str]) -> bool:
    calls = message.role == "assistant" and bool(message.extra.get("tool_calls"))
    return message.role in roles or (calls and "tool_call" in roles)
