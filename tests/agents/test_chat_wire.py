"""The wire format: whatever comes, there is a request or a refusal; what we said is known again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from any_json import json_leaves, json_values, places, with_change
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.agents.programs.chat_request import ChatRequest, read_request
from foresail.agents.programs.chat_turns import count_thinking, split_calls, with_calls
from foresail.chat.errors import Refusal
from foresail.chat.reply import Reply, cut_at, write_events, write_reply
from foresail.chat.request import ChatMessage, ChatToolCall, FunctionCall, one_form, read_json
from foresail.records import Message
from foresail.tokenizer.thinking import BUILT_IN
from foresail.tokenizer.train import train_bpe

NAMES = [
    *"model messages tools tool_choice max_tokens max_completion_tokens stop stream stream_options n".split(),
    *"logprobs top_logprobs response_format role content tool_calls function name arguments id type text".split(),
    *"function_call audio temperature logit_bias parameters include_usage tool_call_id unheard_of".split(),
]
WORDS = [
    *"user assistant system tool developer auto none text function image_url".split(),
    "",
    "{}",
    "\ud800",
]
values = json_values(NAMES, WORDS)
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
GOOD: dict[str, Any] = {
    "model": "gpt",
    "messages": [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": [{"type": "text", "text": "2"}, {"type": "text", "text": "+2"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL], "refusal": None},
        {"role": "tool", "tool_call_id": "c", "content": "4"},
    ],
    "tools": [TOOL],
    "stop": ["a", "b"],
    "max_tokens": 5,
    "stream": True,
    "stream_options": {"include_usage": True},
}


def call(id: str, name: str, arguments: str) -> ChatToolCall:
    return ChatToolCall(id=id, function=FunctionCall(name=name, arguments=arguments))


def check_refusal(refusal: Refusal) -> None:
    error = json.loads(json.dumps(refusal.to_json()))["error"]
    assert refusal.status == 400 and error["message"] and error["type"] == "invalid_request_error"


def read_or_refuse(body: bytes) -> ChatRequest | None:
    try:
        found = read_request(read_json(body))
    except Refusal as refusal:
        check_refusal(refusal)
        return None
    assert found.messages and found.messages[-1].role != "assistant" and hash(found) is not None
    return found


@settings(max_examples=300, deadline=None)
@given(values)
def test_any_json_is_a_request_or_a_refusal(value: Any) -> None:
    read_or_refuse(json.dumps(value).encode())


@settings(max_examples=500, deadline=None)
@given(st.sampled_from(places(GOOD)), values)
def test_a_request_with_anything_in_any_place_is_read_or_refused(path: Any, value: Any) -> None:
    read_or_refuse(json.dumps(with_change(GOOD, path, value)).encode())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_are_refused(body: bytes) -> None:
    assert read_or_refuse(body) is None


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 50_000, b'{"n": 1' + b"0" * 10_000 + b"}", b"\xff"]
)
def test_deep_and_huge_json_is_refused(body: bytes) -> None:
    assert read_or_refuse(body) is None


def test_a_request_is_read() -> None:
    found = read_request(GOOD)
    assert [message.role for message in found.messages] == ["system", "user", "assistant", "tool"]
    assert found.messages[1].content == "2+2"
    assert found.messages[2].tool_calls == (call("c", "add", '{"a": 1}'),)
    assert (found.max_tokens, found.stop, found.stream) == (5, ("a", "b"), True)
    assert found.reads_calls and json.loads(found.tools) == [TOOL]


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"n": 2}, "n"),
        ({"logit_bias": {"1": 5}}, "logit_bias"),
        ({"presence_penalty": 0.5}, "presence_penalty"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": {"type": "function"}}, "tool_choice"),
        ({"top_logprobs": 5}, "top_logprobs"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"stop": ["a"] * 5}, "stop"),
        ({"stop": ""}, "stop"),
        ({"stream": "yes"}, "stream"),
        ({"beam_width": 5}, "beam_width"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "assistant", "content": "4"}]}, "messages"),
        ({"messages": [{"role": "robot", "content": "4"}]}, "messages[0].role"),
        ({"messages": [{"role": "user"}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "a", "tool_calls": [CALL]}]}, "messages[0].tool_calls"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
    ],
)
def test_what_cannot_be_had_is_refused_by_its_name(change: dict[str, Any], param: str) -> None:
    with pytest.raises(Refusal) as refused:
        read_request(GOOD | change)
    assert refused.value.param == param


@pytest.mark.parametrize(
    "change", [{"n": 1}, {"n": None}, {"temperature": 0.2, "top_p": 0.5, "seed": 3}, {"tool_choice": "auto"},
               {"response_format": {"type": "text"}}, {"user": "me"}]
)  # fmt: skip
def test_what_changes_nothing_is_read_over(change: dict[str, Any]) -> None:
    assert read_request(GOOD | change) == read_request(GOOD)


# What we say, and how clients say it back.

arguments = st.dictionaries(
    st.text(max_size=4), st.recursive(json_leaves(WORDS), lambda v: st.lists(v, max_size=2)), max_size=3
)


def reply_of(message: ChatMessage) -> Reply:
    return Reply(id="x", model="policy", message=message, finish="stop", prompt_tokens=1, completion_tokens=2)


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=20), st.lists(st.tuples(st.text(max_size=4), arguments), max_size=3), st.booleans())
def test_our_message_comes_back_as_it_was(text: str, calls: Any, rewrites: bool) -> None:
    """Clients that keep the JSON, and those that read the arguments and write them anew."""
    message = ChatMessage(
        role="assistant",
        content=text,
        tool_calls=tuple(call(f"c{n}", name, one_form(said)) for n, (name, said) in enumerate(calls)),
    )
    back = json.loads(json.dumps(write_reply(reply_of(message))))["choices"][0]["message"]
    if rewrites:
        for function in [entry["function"] for entry in back.get("tool_calls", [])]:
            function["arguments"] = json.dumps(json.loads(function["arguments"]), separators=(",", ":"))
    asked = {"messages": [back, {"role": "user", "content": "and?"}]}
    assert read_request(json.loads(json.dumps(asked))).messages[0] == message


def test_calls_are_taken_from_the_text_and_written_back() -> None:
    text = 'I add.\n<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    message = split_calls(f"<think><tool_call></think>{text}", "7")
    assert message.content == "<think><tool_call></think>I add."
    assert message.tool_calls == (call("call_7_0", "add", '{"a": 1}'),)
    assert with_calls(message).endswith(text)
    assert "tool_calls" not in write_reply(reply_of(split_calls("4", "7")))["choices"][0]["message"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(["<tool_call>", "</tool_call>", "<think>", "</think>", '{"name": "a", ',
                                 '"arguments": {}}', "x", "\n", '{"name": 1}']), max_size=12))  # fmt: skip
def test_any_text_is_a_message(parts: list[str]) -> None:
    text = "".join(parts)
    message = split_calls(text, "1")
    assert message.tool_calls or message.content == text
    assert json.dumps(write_reply(reply_of(message)))


def test_a_stream_holds_the_whole_reply() -> None:
    message = ChatMessage(role="assistant", content="é", tool_calls=(call("c", "add", "{}"),))
    *events, done = write_events(reply_of(message), with_usage=True)
    first, last, usage = (json.loads(event.removeprefix("data: ")) for event in events)
    assert first["choices"][0]["delta"]["content"] == "é"
    assert first["choices"][0]["delta"]["tool_calls"][0]["index"] == 0
    assert last["choices"][0]["finish_reason"] == "stop" and usage["usage"]["total_tokens"] == 3
    assert done == "data: [DONE]\n\n"


def test_text_is_cut_at_the_first_stop() -> None:
    assert cut_at("a b c", ["c", "b"]) == "a " and cut_at("a", ["b"]) == "a"


def test_thinking_tokens_of_a_response_are_counted() -> None:
    template = BUILT_IN["hybrid-short"][0]
    tags = ("<think>", "</think>")
    thinks = train_bpe(["a b"], vocab_size=280, whole_tokens=tags, chat_template=template)
    prompt = thinks.encode_prompt([Message(role="user", content="2?")], True)  # ends in <think>
    thought, answer = thinks.encode("a b</think>"), thinks.encode("a")
    assert count_thinking(prompt, [*thought, *answer], thinks) == len(thought)
    assert count_thinking([5], [6, 7], train_bpe(["a b"], vocab_size=280)) == 0
