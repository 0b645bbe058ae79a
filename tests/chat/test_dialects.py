"""Anthropic's messages and OpenAI's responses: what comes is a request or a refusal, and what we said comes back
as we said it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from any_json import json_values, places, with_change
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.chat.dialect import ANTHROPIC, CHAT, RESPONSES, Dialect
from foresail.chat.errors import Refusal
from foresail.chat.reply import Reply
from foresail.chat.request import ChatMessage, ChatToolCall, FunctionCall, one_form, parse_request
from foresail.chat.thinking import join_thinking, read_seal, split_thinking

DIALECTS = [ANTHROPIC, RESPONSES]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}
ASKED_ANTHROPIC: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": "2+2?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "3?", "signature": "another server's"},
                {"type": "text", "text": "I add."},
                {"type": "tool_use", "id": "c", "name": "add", "input": {"a": 2}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "4"}]},
                {"type": "text", "text": "Sure?"},
            ],
        },
    ],
    "tools": [{"name": "add", "description": "adds", "input_schema": SCHEMA}],
    "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
    "thinking": {"type": "enabled", "budget_tokens": 5},
    "stop_sequences": ["Q:"],
    "metadata": {"user_id": "u"},
    "stream": True,
}
ASKED_RESPONSES: dict[str, Any] = {
    "model": "m",
    "max_output_tokens": 9,
    "instructions": "Be brief.",
    "input": [
        {"role": "user", "content": "2+2?"},
        {
            "type": "reasoning",
            "id": "rs",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "3?"}],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I add."}]},
        {"type": "function_call", "call_id": "c", "name": "add", "arguments": '{"a": 2}'},
        {"type": "function_call_output", "call_id": "c", "output": "4"},
        {"role": "user", "content": [{"type": "input_text", "text": "Sure?"}]},
    ],
    "tools": [
        {"type": "function", "name": "add", "description": "adds", "parameters": SCHEMA, "strict": None}
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": False,
    "reasoning": {"effort": "low"},
    "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}},
    "store": False,
    "stream": True,
}
ASKED = {"anthropic": (ANTHROPIC, ASKED_ANTHROPIC), "responses": (RESPONSES, ASKED_RESPONSES)}


def chat_fields(dialect: Dialect, fields: Any) -> dict[str, Any]:
    return dialect.to_chat(json.loads(json.dumps(fields)))


@pytest.mark.parametrize("name", ASKED)
def test_both_say_what_a_chat_completion_request_says(name: str) -> None:
    chat = chat_fields(*ASKED[name])
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 2}'}}
    assert chat["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2+2?"},
        {"role": "assistant", "content": "<think>\n3?\n</think>\n\nI add.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "4"},
        {"role": "user", "content": "Sure?"},
    ]
    function = {"name": "add", "description": "adds", "parameters": SCHEMA}
    assert chat["tools"] == [{"type": "function", "function": function}]
    assert (chat["max_tokens"], chat["parallel_tool_calls"], chat["stream"]) == (9, False, True)
    assert parse_request(chat).messages[-1].content == "Sure?"


def test_options_have_their_other_names() -> None:
    chat = chat_fields(ANTHROPIC, ASKED_ANTHROPIC)
    assert (chat["stop"], chat["user"], chat["tool_choice"]) == (["Q:"], "u", "auto")
    assert (chat["enable_thinking"], chat["thinking_token_budget"]) == (True, 5)
    chat = chat_fields(RESPONSES, ASKED_RESPONSES)
    assert chat["reasoning_effort"] == "low"
    assert chat["response_format"] == {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}


@pytest.mark.parametrize(
    ("name", "change", "param"),
    [
        ("anthropic", {"max_tokens": None}, "max_tokens"),
        ("anthropic", {"messages": []}, "messages"),
        (
            "anthropic",
            {"messages": [{"role": "user", "content": [{"type": "image"}]}]},
            "messages[0].content[0]",
        ),
        ("anthropic", {"messages": [{"role": "robot", "content": ""}]}, "messages[0].role"),
        ("anthropic", {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0].type"),
        ("anthropic", {"thinking": {"type": "enabled", "budget_tokens": "9"}}, "thinking.budget_tokens"),
        ("responses", {"previous_response_id": "resp_1"}, "previous_response_id"),
        ("responses", {"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        (
            "responses",
            {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
            "input[0].content[0]",
        ),
        ("responses", {"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ("responses", {"truncation": "auto"}, "truncation"),
        ("responses", {"background": True}, "background"),
        ("responses", {"include": ["message.output_text.logprobs"]}, "include[0]"),
    ],
)
def test_what_is_not_known_is_refused_by_its_name(name: str, change: dict[str, Any], param: str) -> None:
    dialect, fields = ASKED[name]
    with pytest.raises(Refusal) as refused:
        chat_fields(dialect, fields | change)
    assert refused.value.param == param and param in refused.value.message


def test_errors_have_the_shape_and_the_names_of_their_dialect() -> None:
    refusal = Refusal("stop must be a text, or a list of texts", param="stop")
    error = {"type": "invalid_request_error", "message": "stop_sequences must be a text, or a list of texts"}
    assert ANTHROPIC.refuse(refusal) == {"type": "error", "error": error, "request_id": None}
    refusal = Refusal("max_tokens must be a whole number", param="max_tokens")
    assert RESPONSES.refuse(refusal)["error"]["param"] == "max_output_tokens"
    assert CHAT.refuse(refusal)["error"]["param"] == "max_tokens"
    assert ANTHROPIC.refuse(Refusal("no such key", status=401))["error"]["type"] == "authentication_error"
    assert ANTHROPIC.refuse(Refusal("broken", status=503))["error"]["type"] == "api_error"


# Thinking.

tagged = st.lists(st.sampled_from(["<think>", "</think>", " ", "\n", "3?", "<", "think>"]), max_size=8).map(
    "".join
)


@given(tagged)
def test_thinking_is_put_back_as_it_was(content: str) -> None:
    thinking = split_thinking(content)
    if thinking is None:
        assert "</think>" not in content
    else:
        assert join_thinking(thinking.thought, thinking.text, thinking.seal) == content
        assert thinking.thought == thinking.thought.strip() or "think>" in thinking.thought


@given(st.text())
def test_a_foreign_seal_adds_no_text(seal: str) -> None:
    assert join_thinking("a", "b", seal).replace("a", "").replace("b", "").split() == [
        "<think>",
        "</think>",
    ] or (read_seal(seal) is not None)


def test_parts_of_a_response_with_thinking() -> None:
    assert split_thinking("4") is None
    for content, thought, text in (
        ("<think>\n3?\n</think>\n\n4", "3?", "4"),
        ("3?</think>4", "3?", "4"),
        ("<think>3?", "3?", ""),
    ):
        thinking = split_thinking(content)
        assert thinking is not None and (thinking.thought, thinking.text) == (thought, text)


# Replies, and how clients send them back.

objects = st.dictionaries(
    st.text(max_size=3), st.one_of(st.integers(), st.text(max_size=3), st.none()), max_size=3
)
calls = st.lists(
    st.builds(
        lambda number, value: ChatToolCall(
            id=f"call_{number}", function=FunctionCall(name="add", arguments=one_form(value))
        ),
        st.integers(0, 9),
        objects,
    ),
    max_size=2,
).map(tuple)
texts = st.one_of(tagged, st.text(max_size=5))
messages = st.builds(
    lambda text, made: ChatMessage(role="assistant", content=text, tool_calls=made), texts, calls
)


def reply_of(message: ChatMessage, finish: Any = "stop", stop_text: str | None = None) -> Reply:
    return Reply(
        id="7",
        model="policy",
        message=message,
        finish="tool_calls" if message.tool_calls else finish,
        prompt_tokens=3,
        completion_tokens=2,
        stop_text=stop_text,
    )


@settings(max_examples=200)
@given(messages)
def test_what_was_said_comes_back_as_it_was(message: ChatMessage) -> None:
    reply = reply_of(message)
    content = json.loads(json.dumps(ANTHROPIC.write(reply, {})))["content"]
    asked = {"role": "user", "content": "?"}
    back = {"max_tokens": 1, "messages": [asked, {"role": "assistant", "content": content}, asked]}
    assert parse_request(ANTHROPIC.to_chat(back)).messages[1] == message
    output = json.loads(json.dumps(RESPONSES.write(reply, {})))["output"]
    assert parse_request(RESPONSES.to_chat({"input": [asked, *output, asked]})).messages[1] == message


@settings(max_examples=100)
@given(messages)
def test_a_stream_adds_up_to_the_reply(message: ChatMessage) -> None:
    reply = reply_of(message)
    events = read_events("".join(ANTHROPIC.write_events(reply, {})))
    blocks: list[dict[str, Any]] = []
    for event in events:
        if event["type"] == "content_block_start":
            blocks.append(dict(event["content_block"]) | {"json": ""})
        elif event["type"] == "content_block_delta":
            delta = event["delta"]
            if delta["type"] == "input_json_delta":
                blocks[-1]["json"] += delta["partial_json"]
            else:
                name = delta["type"].removesuffix("_delta")
                blocks[-1][name] += delta[name]
    for block in blocks:
        if text := block.pop("json"):
            block["input"] = json.loads(text)
    whole = ANTHROPIC.write(reply, {})
    assert blocks == whole["content"]
    assert events[-2]["delta"]["stop_reason"] == whole["stop_reason"]
    events = read_events("".join(RESPONSES.write_events(reply, {})))
    assert [event["sequence_number"] for event in events] == [*range(len(events))]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == done == RESPONSES.write(reply, {})["output"]


def read_events(stream: str) -> list[dict[str, Any]]:
    events = []
    for lines in stream.split("\n\n")[:-1]:
        kind, data = lines.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert events[-1]["type"] == kind.removeprefix("event: ")
    return events


def test_why_a_response_ended() -> None:
    message = ChatMessage(role="assistant", content="4")
    ended = ANTHROPIC.write(reply_of(message, stop_text="Q:"), {})
    assert (ended["stop_reason"], ended["stop_sequence"]) == ("stop_sequence", "Q:")
    assert ANTHROPIC.write(reply_of(message), {})["stop_reason"] == "end_turn"
    assert ANTHROPIC.write(reply_of(message, "length"), {})["stop_reason"] == "max_tokens"
    cut = RESPONSES.write(reply_of(message, "length"), {})
    assert (cut["status"], cut["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_thinking_tokens_are_told() -> None:
    reply = replace(reply_of(ChatMessage(role="assistant", content="<think>3?</think>4")), thinking_tokens=1)
    assert RESPONSES.write(reply, {})["usage"]["output_tokens_details"] == {"reasoning_tokens": 1}


# Anything a client may send.

NAMES = [
    *"model messages max_tokens system tools tool_choice thinking metadata stop_sequences stream".split(),
    *"role content type text tool_use_id input id name input_schema signature budget_tokens".split(),
    *"instructions output call_id arguments reasoning format summary encrypted_content effort".split(),
]
WORDS = [
    *"user assistant system text tool_use tool_result thinking image message reasoning function".split(),
    *("function_call", "function_call_output", "enabled", "auto", "", "{}", "\ud800"),
]
values = json_values(NAMES, WORDS)


@settings(max_examples=400)
@given(st.data())
def test_a_request_with_anything_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    dialect, fields = ASKED[data.draw(st.sampled_from([*ASKED]))]
    path = data.draw(st.sampled_from(places(fields)[1:]))
    changed = with_change(fields, path, data.draw(values))
    try:
        parse_request(dialect.to_chat(changed))
    except Refusal as refusal:
        check_refusal(dialect, refusal)


def check_refusal(dialect: Dialect, refusal: Refusal) -> None:
    error = json.loads(json.dumps(dialect.refuse(refusal)))["error"]
    assert refusal.status == 400 and error["message"] and error["type"] == "invalid_request_error"
