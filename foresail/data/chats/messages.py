"""Chat messages as rows have them: texts or parts, tool calls, thoughts, and whether a message has a loss."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foresail.data.chats.tool_calls import read_call, read_calls
from foresail.data.files import excerpt
from foresail.records import Message

ROLES = ("system", "user", "assistant", "tool")


def to_messages(value: Any, place: str) -> tuple[Message, ...]:
    """Chat messages of a column: [{"role": "user", "content": "2+2?"}] -> (Message(user, "2+2?"),)."""
    if not isinstance(value, list) or not value:
        raise ValueError(
            f"{place}: expected a list of messages with role and content, found {excerpt(value)}"
        )
    return tuple(to_message(entry, place) for entry in value)


def to_message(entry: Any, place: str) -> Message:
    """With its tool calls and its row's loss flag, if there are any."""
    calls = entry.get("tool_calls") if isinstance(entry, dict) else None
    if not isinstance(entry, dict) or "role" not in entry or ("content" not in entry and not calls):
        raise ValueError(f"{place}: a message needs role and content, found {excerpt(entry)}")
    role, content = entry["role"], entry.get("content")
    if role not in ROLES:
        raise ValueError(f"{place}: unknown role {role!r}; use one of {', '.join(ROLES)}")
    extra = {name: entry[name] for name in ("name", "tool_call_id") if entry.get(name) is not None}
    called = read_calls(calls, place) if calls else []
    if isinstance(content, list):
        content, more = join_parts(content, place)
        called += more
    if called and role != "assistant":
        raise ValueError(f"{place}: a message of {role} calls tools; only the assistant does")
    if called:
        extra["tool_calls"] = called
        content = "" if content is None else content
    if not isinstance(content, str):
        raise ValueError(f"{place}: message content must be text, found {excerpt(content)}")
    if isinstance(thought := entry.get("reasoning_content"), str) and thought and role == "assistant":
        content = think(thought) + content
    return Message(role=role, content=content, extra=extra, train=read_flag(entry, place))


def join_parts(parts: list[Any], place: str) -> tuple[str, list[dict[str, Any]]]:
    """The text of a content in parts, and the calls among them. Thoughts go between <think> and </think>.

    [{"type": "reasoning", "value": "Add."}, {"type": "text", "value": "4"}] -> "<think>\nAdd.\n</think>\n\n4"
    """
    texts, calls = [], []
    for part in parts:
        kind = part.get("type", "text") if isinstance(part, dict) else None
        value = part.get("text", part.get("value")) if isinstance(part, dict) else None
        if not isinstance(value, str) or kind not in ("text", "reasoning", "thinking", "tool_call"):
            raise ValueError(
                f"{place}: message content must be text, or parts of type text, reasoning and tool_call, found "
                f"{excerpt(part)}"
            )
        if kind == "tool_call":
            calls += read_call(value, place)
        else:
            texts.append(value if kind == "text" else think(value))
    return "".join(texts), calls


def think(text: str) -> str:
    """A thought in the form of models that think before they answer."""
    return f"<think>\n{text}\n</think>\n\n"


def read_flag(entry: Mapping[str, Any], place: str) -> bool | None:
    """`train` is true or false; `weight` 0 is false; None, as the recipe says, for `weight` 1 or neither."""
    train, weight = entry.get("train"), entry.get("weight")
    if train is not None and not isinstance(train, bool):
        raise ValueError(f"{place}: train is true or false, found {excerpt(train)}")
    if weight is not None and (isinstance(weight, str) or weight not in (0, 1)):
        raise ValueError(f"{place}: the weight of a message is 0 or 1, found {excerpt(weight)}")
    if train is None and weight is not None:
        return False if weight == 0 else None
    return train
