"""The record of a request, apart from what any server makes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.chat.errors import Refusal
from foresail.chat.request import ChatCompletionRequest, parse_request, read_json

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]
# As in OpenAI's reference, every field with a value of its type.
WHOLE: dict[str, Any] = {
    "messages": HELLO,
    "model": "m",
    "audio": {"voice": "alloy", "format": "wav"},
    "frequency_penalty": 0.5,
    "function_call": "auto",
    "functions": [{"name": "f"}],
    "logit_bias": {"50256": -100},
    "logprobs": True,
    "max_completion_tokens": 7,
    "max_tokens": 9,
    "metadata": {"a": "b"},
    "modalities": ["text"],
    "n": 2,
    "parallel_tool_calls": False,
    "prediction": {"type": "content", "content": "x"},
    "presence_penalty": -2,
    "prompt_cache_key": "k",
    "reasoning_effort": "low",
    "response_format": {"type": "json_object"},
    "safety_identifier": "s",
    "seed": 1,
    "service_tier": "auto",
    "stop": "###",
    "store": False,
    "stream": True,
    "stream_options": {"include_usage": True},
    "temperature": 0,
    "tool_choice": {"type": "function", "function": {"name": "f"}},
    "tools": [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}],
    "top_logprobs": 3,
    "top_p": 0.9,
    "user": "u",
    "verbosity": "low",
    "web_search_options": {},
}


def test_the_whole_request_is_known() -> None:
    request = parse_request(WHOLE)
    assert not request.model_extra
    assert request.messages[0].content == "hello" and request.stop == ("###",)
    assert (request.temperature, request.n, request.token_limit) == (0, 2, 7)
    assert request.stream_options is not None and request.stream_options.include_usage
    assert request.model_dump()["tools"][0] == WHOLE["tools"][0]


def test_null_is_as_good_as_nothing() -> None:
    known = set(ChatCompletionRequest.model_fields) - {"messages"}
    assert parse_request({"messages": HELLO, **dict.fromkeys(known)}) == parse_request({"messages": HELLO})


def test_unknown_fields_are_left_to_the_caller() -> None:
    assert parse_request({"messages": HELLO, "beam_width": 5}).model_extra == {"beam_width": 5}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"temperature": 3}, "temperature should be less than or equal to 2"),
        ({"temperature": "0.5"}, "temperature should be a valid number"),
        ({"top_p": -1}, "top_p should be greater than or equal to 0"),
        ({"n": True}, "n should be a valid integer"),
        ({"max_tokens": 0}, "max_tokens must be a whole number of at least 1"),
        ({"stream": 1}, "stream must be true or false"),
        ({"messages": "hello"}, "messages must be a list"),
        ({"messages": [*HELLO, 5]}, r"messages\[1\] must be an object"),
        ({"messages": [{"role": "user", "content": 5}]}, r"messages\[0\].content must be text"),
        ({"messages": [{"role": "user"}]}, r"messages\[0\].content must be text"),
        ({"messages": [{"content": "a"}]}, r"messages\[0\].role is missing"),
        (
            {"messages": [{"role": "assistant", "function_call": {}}, *HELLO]},
            r"messages\[0\] holds function_call",
        ),
        ({"tools": [{"type": "function"}]}, "tools must be a list of objects"),
        ({"logit_bias": {"5": 101}}, r"logit_bias.5 should be less"),
    ],
)
def test_what_is_malformed_is_refused_by_its_name(change: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        parse_request({"messages": HELLO, **change})


leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["\ud800", ""])
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=9)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(sorted(WHOLE)), values)
def test_anything_in_any_field_is_read_or_refused(name: str, value: Any) -> None:
    record: Any = None
    try:
        record = parse_request(read_json(json.dumps(WHOLE | {name: value}).encode())).model_dump()
    except Refusal as refusal:
        record = refusal.to_json()
    assert json.dumps(record)
