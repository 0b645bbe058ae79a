"""Anthropic's messages requests as chat completion requests, so that all dialects have one way through the house.

to_chat({"max_tokens": 9, "system": "Be brief.", "messages": [{"role": "user", "content": "2+2?"}]})
-> {"max_tokens": 9, "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]}

Blocks become messages: results of tools are messages of their own, thinking goes back to its place in the text.
What this file does not know is passed on by its name, and refused there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from foresail.chat.fields import Fields, an_object, item_of, list_at, named, object_at, refuse, text_at
from foresail.chat.thinking import join_thinking

SAME = ("model", "max_tokens", "temperature", "top_k", "top_p", "stream", "service_tier")
CHOICES = {"auto": "auto", "any": "required", "none": "none"}
# Hints for a cache or a billing system, without effect on what is said.
WITHOUT_EFFECT = ("cache_control", "betas", "inference_geo")


def to_chat(fields: Fields) -> dict[str, Any]:
    """Fields of a chat completion request; raises a Refusal that names Anthropic's field."""
    if fields.get("max_tokens") is None:
        raise refuse("max_tokens", "is missing")
    chat: dict[str, Any] = {name: fields[name] for name in SAME if name in fields}
    for name, read in READERS.items():
        if fields.get(name) is not None:
            chat |= read(fields)
    chat["messages"] = [*system_messages(fields), *conversation(fields)]
    known = {*SAME, *READERS, "messages", "system", *WITHOUT_EFFECT}
    return chat | {name: value for name, value in fields.items() if name not in known}


# Messages.


def system_messages(fields: Fields) -> Iterator[dict[str, Any]]:
    if fields.get("system"):
        yield {"role": "system", "content": plain_text(fields["system"], "system")}


def conversation(fields: Fields) -> Iterator[dict[str, Any]]:
    messages = list_at(fields, "messages")
    if not messages:
        raise refuse("messages", "is missing or empty")
    for number, message in enumerate(messages):
        place = item_of("messages", number)
        role = text_at(an_object(message, place), "role", place)
        if role not in ("user", "assistant", "system"):
            raise refuse(named(place, "role"), "must be user or assistant")
        content = message.get("content")
        if isinstance(content, str):
            yield {"role": role, "content": content}
        elif role == "assistant":
            yield from assistant_message(blocks_of(message, place))
        elif role == "system":
            yield {"role": role, "content": plain_text(content, named(place, "content"))}
        else:
            yield from user_messages(blocks_of(message, place))


Block = tuple[str, str, Fields]  # where it stands, its type, the block


def blocks_of(message: Fields, place: str) -> list[Block]:
    if message.get("content") is None:
        raise refuse(named(place, "content"), "is missing")
    blocks = []
    for number, block in enumerate(list_at(message, "content", place)):
        where = item_of(named(place, "content"), number)
        blocks.append((where, text_at(an_object(block, where), "type", where), block))
    return blocks


def user_messages(blocks: list[Block]) -> Iterator[dict[str, Any]]:
    """Texts in a row are one message; each result of a tool is one."""
    texts: list[str] = []
    for place, kind, block in blocks:
        if kind == "text":
            texts.append(text_at(block, "text", place))
        elif kind == "tool_result":
            if texts:
                yield {"role": "user", "content": "".join(texts)}
                texts = []
            yield {
                "role": "tool",
                "tool_call_id": text_at(block, "tool_use_id", place),
                "content": plain_text(block.get("content"), named(place, "content")),
            }
        else:
            raise unreadable(place, kind)
    if texts or not blocks:
        yield {"role": "user", "content": "".join(texts)}


def assistant_message(blocks: list[Block]) -> Iterator[dict[str, Any]]:
    text, thought, calls = "", None, []
    for place, kind, block in blocks:
        if kind == "text":
            text += text_at(block, "text", place)
        elif kind == "thinking":
            thought = text_at(block, "thinking", place), text_at(block, "signature", place, default="")
        elif kind == "tool_use":
            calls.append(tool_call(block, place))
        elif kind != "redacted_thinking":
            raise unreadable(place, kind)
    if thought is not None:
        text = join_thinking(thought[0], text, thought[1])
    yield {"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {})


def tool_call(block: Fields, place: str) -> dict[str, Any]:
    function = {
        "name": text_at(block, "name", place),
        "arguments": json.dumps(object_at(block, "input", place)),
    }
    return {"id": text_at(block, "id", place), "type": "function", "function": function}


def plain_text(content: Any, place: str) -> str:
    """Of a text or of blocks that are all text; what a tool may leave out is empty."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise refuse(place, "must be text, or a list of blocks")
    texts = []
    for number, block in enumerate(content):
        where = item_of(place, number)
        kind = text_at(an_object(block, where), "type", where)
        if kind != "text":
            raise unreadable(where, kind)
        texts.append(text_at(block, "text", where))
    return "".join(texts)


def unreadable(place: str, kind: str) -> Exception:
    return refuse(
        place,
        f"has the type {kind[:40]!r}, which is not known here: this model reads text, "
        "and no images, sound or files",
    )


# Options.


def read_tools(fields: Fields) -> dict[str, Any]:
    tools = []
    for number, tool in enumerate(list_at(fields, "tools")):
        place = item_of("tools", number)
        kind = text_at(an_object(tool, place), "type", place, default="custom")
        if kind != "custom":
            raise refuse(
                named(place, "type"),
                f"{kind[:40]!r} is a tool of Anthropic's servers; only your own can be called",
            )
        function = {
            "name": text_at(tool, "name", place),
            "parameters": object_at(tool, "input_schema", place),
        }
        if tool.get("description") is not None:
            function["description"] = text_at(tool, "description", place)
        tools.append({"type": "function", "function": function})
    return {"tools": tools}


def read_tool_choice(fields: Fields) -> dict[str, Any]:
    choice = object_at(fields, "tool_choice")
    kind = text_at(choice, "type", "tool_choice")
    parallel = {"parallel_tool_calls": False} if choice.get("disable_parallel_tool_use") is True else {}
    if kind == "tool":
        name = text_at(choice, "name", "tool_choice")
        return {"tool_choice": {"type": "function", "function": {"name": name}}} | parallel
    if kind not in CHOICES:
        raise refuse("tool_choice.type", f"must be one of {', '.join([*CHOICES, 'tool'])}")
    return {"tool_choice": CHOICES[kind]} | parallel


def read_thinking(fields: Fields) -> dict[str, Any]:
    thinking = object_at(fields, "thinking")
    kind = text_at(thinking, "type", "thinking")
    if kind == "disabled":
        return {"enable_thinking": False}
    if kind not in ("enabled", "adaptive"):
        raise refuse("thinking.type", "must be one of enabled, adaptive, disabled")
    budget = thinking.get("budget_tokens")
    if budget is None:
        return {"enable_thinking": True}
    if not isinstance(budget, int) or isinstance(budget, bool) or budget < 1:
        raise refuse("thinking.budget_tokens", "must be a whole number of at least 1")
    return {"enable_thinking": True, "thinking_token_budget": budget}


def read_metadata(fields: Fields) -> dict[str, Any]:
    user = object_at(fields, "metadata").get("user_id")
    return {} if user is None else {"user": text_at({"user_id": user}, "user_id", "metadata")}


READERS: Mapping[str, Callable[[Fields], dict[str, Any]]] = {
    "tools": read_tools,
    "tool_choice": read_tool_choice,
    "thinking": read_thinking,
    "metadata": read_metadata,
    "stop_sequences": lambda fields: {"stop": [*list_at(fields, "stop_sequences")]},
}
