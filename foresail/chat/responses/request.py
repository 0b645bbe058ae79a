"""OpenAI's responses requests as chat completion requests, so that all dialects have one way through the house.

to_chat({"instructions": "Be brief.", "input": "2+2?", "max_output_tokens": 9})
-> {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}], "max_tokens": 9}

Items become messages: reasoning, a message and calls of the model in a row are one message of the assistant. What
this file does not know is passed on by its name, and refused there. Nothing is stored, so a client sends the whole
conversation each time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from foresail.chat.fields import Fields, an_object, item_of, list_at, named, object_at, refuse, text_at
from foresail.chat.thinking import join_thinking

SAME = (
    *("model", "temperature", "top_p", "stream", "parallel_tool_calls", "metadata", "user", "service_tier"),
    *("prompt_cache_key", "prompt_cache_retention", "safety_identifier", "top_logprobs"),
)
TEXT_PARTS = ("input_text", "output_text", "text")
STATEFUL = ("previous_response_id", "conversation", "prompt")
# Without effect on what is said: whether it is stored, and a limit on tools of OpenAI's servers.
WITHOUT_EFFECT = ("store", "stream_options", "max_tool_calls")
INCLUDED = "reasoning.encrypted_content"  # in every reply with reasoning


def to_chat(fields: Fields) -> dict[str, Any]:
    """Fields of a chat completion request; raises a Refusal that names the field of the responses API."""
    for name in STATEFUL:
        if fields.get(name) is not None:
            raise refuse(
                name, "is not known here, where nothing is stored; send the whole conversation as input"
            )
    chat: dict[str, Any] = {name: fields[name] for name in SAME if name in fields}
    for name, read in READERS.items():
        if fields.get(name) is not None:
            chat |= read(fields)
    chat["messages"] = [*instructions(fields), *conversation(fields)]
    known = {*SAME, *READERS, *STATEFUL, *WITHOUT_EFFECT, "input", "instructions"}
    return chat | {name: value for name, value in fields.items() if name not in known}


# Messages.


def instructions(fields: Fields) -> Iterator[dict[str, Any]]:
    if fields.get("instructions") is not None:
        yield {"role": "system", "content": text_at(fields, "instructions")}


@dataclass(kw_only=True)
class Turn:
    """Items of the model in a row."""

    text: str = ""
    thought: tuple[str, str] | None = None
    calls: list[dict[str, Any]] = field(default_factory=list)

    def message(self) -> dict[str, Any]:
        text = (
            self.text if self.thought is None else join_thinking(self.thought[0], self.text, self.thought[1])
        )
        return {"role": "assistant", "content": text} | ({"tool_calls": self.calls} if self.calls else {})


def conversation(fields: Fields) -> Iterator[dict[str, Any]]:
    if isinstance(fields.get("input"), str):
        yield {"role": "user", "content": fields["input"]}
        return
    turn: Turn | None = None
    for number, item in enumerate(list_at(fields, "input")):
        place = item_of("input", number)
        kind = text_at(an_object(item, place), "type", place, default="message")
        is_said = kind in ("reasoning", "function_call") or (
            kind == "message" and item.get("role") == "assistant"
        )
        if is_said:
            turn = turn or Turn()
            add_item(turn, kind, item, place)
            continue
        if turn is not None:
            yield turn.message()
            turn = None
        yield heard(kind, item, place)
    if turn is not None:
        yield turn.message()


def add_item(turn: Turn, kind: str, item: Fields, place: str) -> None:
    if kind == "message":
        turn.text += content_text(item, place)
    elif kind == "reasoning":
        parts = list_at(item, "content", place)
        texts = [
            text_at(an_object(part, item_of(named(place, "content"), number)), "text", place)
            for number, part in enumerate(parts)
        ]
        if texts:
            turn.thought = "".join(texts), text_at(item, "encrypted_content", place, default="")
    else:
        function = {"name": text_at(item, "name", place), "arguments": text_at(item, "arguments", place)}
        turn.calls.append({"id": text_at(item, "call_id", place), "type": "function", "function": function})


def heard(kind: str, item: Fields, place: str) -> dict[str, Any]:
    """A message of the user or the system, or the result of a call."""
    if kind == "message":
        return {"role": text_at(item, "role", place), "content": content_text(item, place)}
    if kind == "function_call_output":
        content = item.get("output")
        text = content if isinstance(content, str) else parts_text(content, named(place, "output"))
        return {"role": "tool", "tool_call_id": text_at(item, "call_id", place), "content": text}
    raise refuse(
        named(place, "type"),
        f"{kind[:40]!r} is not known here; there are message, reasoning, function_call and function_call_output",
    )


def content_text(item: Fields, place: str) -> str:
    content = item.get("content")
    return content if isinstance(content, str) else parts_text(content, named(place, "content"))


def parts_text(parts: Any, place: str) -> str:
    if not isinstance(parts, list):
        raise refuse(place, "must be text, or a list of parts")
    texts = []
    for number, part in enumerate(parts):
        where = item_of(place, number)
        kind = text_at(an_object(part, where), "type", where)
        if kind not in TEXT_PARTS:
            raise refuse(
                where, f"has the type {kind[:40]!r}: this model reads text, and no images, sound or files"
            )
        texts.append(text_at(part, "text", where))
    return "".join(texts)


# Options.


def read_tools(fields: Fields) -> dict[str, Any]:
    tools = []
    for number, tool in enumerate(list_at(fields, "tools")):
        place = item_of("tools", number)
        kind = text_at(an_object(tool, place), "type", place)
        if kind != "function":
            raise refuse(
                named(place, "type"),
                f"{kind[:40]!r} is a tool of OpenAI's servers; only functions can be called",
            )
        function = {name: value for name, value in tool.items() if name != "type" and value is not None}
        tools.append({"type": "function", "function": function})
    return {"tools": tools}


def read_tool_choice(fields: Fields) -> dict[str, Any]:
    choice = fields["tool_choice"]
    if not isinstance(choice, dict):
        return {"tool_choice": choice}
    if text_at(choice, "type", "tool_choice") != "function":
        raise refuse("tool_choice.type", "must be function")
    return {"tool_choice": {"type": "function", "function": {"name": text_at(choice, "name", "tool_choice")}}}


def read_text(fields: Fields) -> dict[str, Any]:
    """The form of the answer: its JSON schema has a level more in a chat completion request."""
    text = object_at(fields, "text")
    chat = {} if text.get("verbosity") is None else {"verbosity": text_at(text, "verbosity", "text")}
    form = object_at(text, "format", "text")
    if not form:
        return chat
    if form.get("type") == "json_schema":
        schema = {name: value for name, value in form.items() if name != "type"}
        return chat | {"response_format": {"type": "json_schema", "json_schema": schema}}
    return chat | {"response_format": dict(form)}


def read_reasoning(fields: Fields) -> dict[str, Any]:
    effort = object_at(fields, "reasoning").get("effort")
    return {} if effort is None else {"reasoning_effort": effort}


def read_truncation(fields: Fields) -> dict[str, Any]:
    if fields["truncation"] != "disabled":
        raise refuse("truncation", 'must be "disabled": no part of a conversation is left out here')
    return {}


def read_include(fields: Fields) -> dict[str, Any]:
    for number, name in enumerate(list_at(fields, "include")):
        if name != INCLUDED:
            raise refuse(
                item_of("include", number),
                f'can only be "{INCLUDED}": a reply has nothing else; leave it out',
            )
    return {}


def read_background(fields: Fields) -> dict[str, Any]:
    if fields["background"] is not False:
        raise refuse("background", "must be false: a response is waited for here")
    return {}


READERS: Mapping[str, Callable[[Fields], dict[str, Any]]] = {
    "tools": read_tools,
    "tool_choice": read_tool_choice,
    "text": read_text,
    "reasoning": read_reasoning,
    "truncation": read_truncation,
    "background": read_background,
    "include": read_include,
    "max_output_tokens": lambda fields: {"max_tokens": fields["max_output_tokens"]},
}
