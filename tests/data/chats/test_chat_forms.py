"""One conversation in every form that rows have: read alike, whatever the search puts into it."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chat_searches import chats
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.data.chats.conversations import Chat, load_chats, to_chat
from foresail.data.rows import Row
from foresail.records import Message

SPEAKERS = {"user": "human", "assistant": "gpt", "tool": "observation", "system": "system"}
DEMO = Path(__file__).parents[4] / "shared/data/preference/llamafactory_demo"


def read(columns: dict[str, Any]) -> Chat:
    return to_chat(Row(place="a.jsonl:1", columns=json.loads(json.dumps(columns))))


def openai(message: Message) -> dict[str, Any]:
    """Arguments as text, and no content beside calls."""
    calls = message.extra.get("tool_calls")
    if not calls:
        return {"role": message.role, "content": message.content}
    written = [
        {
            "type": "function",
            "function": {**call["function"], "arguments": json.dumps(call["function"]["arguments"])},
        }
        for call in calls
    ]
    return {"role": message.role, "content": None, "tool_calls": written}


def sharegpt(message: Message) -> dict[str, Any]:
    calls = [call["function"] for call in message.extra.get("tool_calls", ())]
    if calls:
        return {"from": "function_call", "value": json.dumps(calls if len(calls) > 1 else calls[0])}
    return {"from": SPEAKERS[message.role], "value": message.content}


def in_parts(message: Message) -> dict[str, Any]:
    calls = [
        {"type": "tool_call", "value": json.dumps(c["function"])} for c in message.extra.get("tool_calls", ())
    ]
    return {"role": message.role, "content": calls or [{"type": "text", "value": message.content}]}


@settings(max_examples=120)
@given(chats(), st.booleans())
def test_every_form_of_a_conversation_is_read_alike(chat: Chat, as_text: bool) -> None:
    bare = [tool["function"] for tool in chat.tools]
    tools = {"tools": json.dumps(bare) if as_text else list(chat.tools)}
    if chat.messages[0].role == "system":
        beside = {"system": chat.messages[0].content}
        assert read({"conversations": [*map(sharegpt, chat.messages[1:])], **beside, **tools}) == chat
    assert read({"messages": [*map(openai, chat.messages)], **tools}) == chat
    assert read({"messages": [*map(in_parts, chat.messages)], **tools}) == chat
    assert read({"conversations": [*map(sharegpt, chat.messages)], **tools}) == chat
    *prompt, last = map(openai, chat.messages)
    split = read({"prompt": prompt, "completion": [last], **tools})
    assert tuple(replace(message, train=None) for message in split.messages) == chat.messages
    assert split.tools == chat.tools
    assert [message.train for message in split.messages[:-1] if message.role == "assistant"] == [
        False for message in chat.messages[:-1] if message.role == "assistant"
    ]
    assert split.messages[-1].train is None


def test_alpaca_is_a_conversation_of_two() -> None:
    chat = read({"instruction": "Add.", "input": "1 1", "output": "2"})
    assert [message.content for message in chat.messages] == ["Add.\n\n1 1", "2"] and chat.tools == ()


@pytest.mark.parametrize(
    ("said", "train"),
    [({}, None), ({"train": False}, False), ({"train": True}, True), ({"weight": 0}, False), ({"weight": 1}, None),
     ({"weight": 0.0}, False), ({"weight": 0, "train": True}, True), ({"train": None, "weight": None}, None)],
)  # fmt: skip
def test_a_message_may_say_whether_it_has_a_loss(said: dict[str, Any], train: bool | None) -> None:
    for entry in ({"role": "assistant", "content": "2"}, {"from": "gpt", "value": "2"}):
        column = "messages" if "role" in entry else "conversations"
        chat = read({column: [{"role": "user", "content": "1+1"}, {**entry, **said}]})
        assert [message.train for message in chat.messages] == [None, train]


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            {"role": "assistant", "content": "2", "weight": 0.5},
            "the weight of a message is 0 or 1, found 0.5",
        ),
        ({"role": "assistant", "content": "2", "train": "no"}, "train is true or false, found no"),
        ({"role": "assistant", "tool_calls": [{}]}, "a tool call needs the name of a function"),
        ({"role": "assistant", "tool_calls": "[{"}, "a tool call is not JSON"),
        ({"role": "assistant", "tool_calls": [{"name": "f", "arguments": "[1]"}]}, "f must be a JSON object"),
        (
            {"role": "assistant", "tool_calls": [{"name": "f", "arguments": "{"}]},
            "arguments of f is not JSON",
        ),
        (
            {"role": "tool", "content": "", "tool_calls": [{"name": "f"}]},
            "of tool calls tools; only the assistant",
        ),
        (
            {"role": "assistant", "content": [{"type": "image", "value": "x"}]},
            "or parts of type text, reasoning",
        ),
    ],
)
def test_messages_that_cannot_be_read_say_so(message: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=rf"a.jsonl:1: messages: .*{told}"):
        read({"messages": [{"role": "user", "content": "1+1"}, message]})


def test_thoughts_stand_before_the_answer() -> None:
    parts = [{"type": "reasoning", "value": "Add."}, {"type": "text", "value": "2"}]
    first = read({"messages": [{"role": "user", "content": "1"}, {"role": "assistant", "content": parts}]})
    own = {"role": "assistant", "content": "2", "reasoning_content": "Add."}
    second = read({"messages": [{"role": "user", "content": "1"}, own]})
    assert first.messages[1].content == "<think>\nAdd.\n</think>\n\n2" == second.messages[1].content


@pytest.mark.skipif(not DEMO.is_dir(), reason="the shared data is not there")
def test_real_tool_data_is_read_whole() -> None:
    for name, count, calls in (("glaive_toolcall_en_demo", 300, 211), ("reason_tool_use_demo_50", 50, 68)):
        file = DEMO / f"{name}.jsonl.gz"
        found = load_chats(file)
        assert len(found) == count
        called = [call for chat in found for m in chat.messages for call in m.extra.get("tool_calls", ())]
        assert len(called) == calls and all(call["function"]["name"] for call in called)
        with gzip.open(file, "rt") as lines:
            told = [len(json.loads(json.loads(line)["tools"] or "[]")) for line in lines]
        assert [len(chat.tools) for chat in found] == told
