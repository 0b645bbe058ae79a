"""Tool calls: valid ones pass, and each of their mutations is found."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.curate.conversations.cut import cut_before
from foresail.curate.conversations.schema import argument_schema, is_of, mistakes, types_of
from foresail.curate.conversations.tool_calls import ToolCalls, is_placeholder
from foresail.curate.document import Document, Drop
from foresail.curate.rows.conversation import conversation_row
from foresail.curate.rows.row import with_row

# Schemas with values that fit them.

SCALARS = {
    "string": st.sampled_from(["Jakarta", "2024-05-01", "ลาว", "a b"]),
    "integer": st.integers(-5, 50),
    "number": st.floats(0, 9, allow_nan=False) | st.integers(0, 9),
    "boolean": st.booleans(),
}
WRONG = {"string": 5, "integer": "5", "number": "5.5", "boolean": "yes", "array": {"a": 1}, "object": ["a"]}


@st.composite
def typed(draw: st.DrawFn, depth: int = 2) -> tuple[dict[str, Any], Any]:
    """A schema and a value that fits it."""
    kinds = [*SCALARS, "enum", *(["array", "object"] if depth else [])]
    kind = draw(st.sampled_from(kinds))
    if kind == "enum":
        options = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
        return {"type": "string", "enum": options}, draw(st.sampled_from(options))
    if kind == "array":
        schema, value = draw(typed(depth=depth - 1))
        return {"type": "array", "items": schema, "minItems": 1}, [value] * draw(st.integers(1, 3))
    if kind == "object":
        return draw(objects(depth=depth - 1))
    return {"type": kind}, draw(SCALARS[kind])


@st.composite
def objects(draw: st.DrawFn, depth: int = 2) -> tuple[dict[str, Any], dict[str, Any]]:
    names = draw(st.lists(st.sampled_from(["city", "n", "unit", "on", "tags"]), min_size=1, unique=True))
    schemas, value = {}, {}
    for name in names:
        schemas[name], value[name] = draw(typed(depth=depth))
    required = draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    left = {name: item for name, item in value.items() if name in required or draw(st.booleans())}
    schema = {"type": "object", "properties": schemas, "required": required, "additionalProperties": False}
    return schema, left


@st.composite
def chats(draw: st.DrawFn) -> dict[str, Any]:
    """A valid conversation: rounds of a question, one call or several, their answers, and a reply."""
    tools, calls_of = [], []
    for name in ("search", "book")[: draw(st.integers(1, 2))]:
        schema, _ = made = draw(objects())
        tools.append({"type": "function", "function": {"name": name, "parameters": schema}})
        calls_of.append((name, made[1]))
    with_ids, messages = draw(st.booleans()), []
    for turn in range(draw(st.integers(1, 3))):
        calls = [
            calls_of[place]
            for place in draw(st.lists(st.integers(0, len(calls_of) - 1), min_size=1, max_size=3))
        ]
        rows = [{"function": {"name": name, "arguments": copy.deepcopy(value)}} for name, value in calls]
        answers = [{"role": "tool", "content": f"result {turn}.{place}"} for place in range(len(calls))]
        if with_ids:
            for place, (row, answer) in enumerate(zip(rows, answers, strict=True)):
                row["id"] = answer["tool_call_id"] = f"call-{turn}-{place}"
            answers = draw(st.permutations(answers))
        messages += [
            {"role": "user", "content": f"Do thing {turn}."},
            {"role": "assistant", "content": "", "tool_calls": rows},
            *answers,
            {"role": "assistant", "content": f"Thing {turn} is done."},
        ]
    return {"messages": messages, "tools": tools}


def checked(row: dict[str, Any], **keys: Any) -> Document | Drop:
    document = with_row(Document(id="a"), conversation_row(copy.deepcopy(row), "a"))
    return ToolCalls(**keys).open()(document)


# Mutations, each of which makes one mistake; nothing where it cannot be made.


def calls_of(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [call["function"] for message in row["messages"] for call in message.get("tool_calls", ())]


def schema_of(row: dict[str, Any], call: dict[str, Any]) -> dict[str, Any]:
    return next(t["function"]["parameters"] for t in row["tools"] if t["function"]["name"] == call["name"])


def unknown_tool(dice: random.Random, row: dict[str, Any]) -> str:
    dice.choice(calls_of(row))["name"] = "serch"
    return "unknown_tool"


def no_tools(dice: random.Random, row: dict[str, Any]) -> str:
    row["tools"] = []
    return "unknown_tool"


def twice(dice: random.Random, row: dict[str, Any]) -> str:
    row["tools"].append(dice.choice(row["tools"]))
    return "broken_tools"


def nameless(dice: random.Random, row: dict[str, Any]) -> str:
    row["tools"].append({"type": "function", "function": {"description": "?"}})
    return "broken_tools"


def missing(dice: random.Random, row: dict[str, Any]) -> str:
    call = dice.choice(calls_of(row))
    del call["arguments"][dice.choice(schema_of(row, call)["required"])]
    return "wrong_arguments"


def unnamed_argument(dice: random.Random, row: dict[str, Any]) -> str:
    dice.choice(calls_of(row))["arguments"]["colour"] = "red"
    return "wrong_arguments"


def places(value: Any, schema: dict[str, Any]) -> list[tuple[Any, Any, dict[str, Any]]]:
    """Container, key and schema of every value inside."""
    found = []
    if isinstance(value, dict):
        inside = [(name, item, schema["properties"][name]) for name, item in value.items()]
    else:
        inside = [(place, item, schema["items"]) for place, item in enumerate(value)]
    for key, item, own in inside:
        found.append((value, key, own))
        if isinstance(item, dict | list):
            found += places(item, own)
    return found


def other_type(dice: random.Random, row: dict[str, Any]) -> str:
    call = dice.choice(calls_of(row))
    container, key, schema = dice.choice(places(call["arguments"], schema_of(row, call)))
    container[key] = dice.choice([WRONG[schema["type"]], None])
    return "wrong_arguments"


def none_of_enum(dice: random.Random, row: dict[str, Any]) -> str | None:
    call = dice.choice(calls_of(row))
    enums = [one for one in places(call["arguments"], schema_of(row, call)) if "enum" in one[2]]
    if not enums:
        return None
    container, key, _ = dice.choice(enums)
    container[key] = "z"
    return "wrong_arguments"


def emptied_list(dice: random.Random, row: dict[str, Any]) -> str | None:
    call = dice.choice(calls_of(row))
    lists = [one for one in places(call["arguments"], schema_of(row, call)) if one[2]["type"] == "array"]
    if not lists:
        return None
    container, key, _ = dice.choice(lists)
    container[key] = []
    return "wrong_arguments"


def placeholder(dice: random.Random, row: dict[str, Any]) -> str | None:
    call = dice.choice(calls_of(row))
    texts = [
        one
        for one in places(call["arguments"], schema_of(row, call))
        if one[2]["type"] == "string" and "enum" not in one[2]
    ]
    if not texts:
        return None
    container, key, _ = dice.choice(texts)
    container[key] = dice.choice(["<city>", "{{date}}", "YOUR_API_KEY", "[INSERT NAME]", "${TOKEN}", "TODO"])
    return "placeholder"


def no_answer(dice: random.Random, row: dict[str, Any]) -> str:
    answers = [message for message in row["messages"] if message["role"] == "tool"]
    row["messages"].remove(dice.choice(answers))
    return "unanswered_call"


def answered_twice(dice: random.Random, row: dict[str, Any]) -> str:
    place = dice.choice([place for place, message in enumerate(row["messages"]) if message["role"] == "tool"])
    row["messages"].insert(place, row["messages"][place])
    return "answer_without_call"


def no_call(dice: random.Random, row: dict[str, Any]) -> str:
    message = dice.choice([message for message in row["messages"] if "tool_calls" in message])
    del message["tool_calls"]
    message["content"] = "One moment."
    return "answer_without_call"


def other_id(dice: random.Random, row: dict[str, Any]) -> str | None:
    answers = [message for message in row["messages"] if "tool_call_id" in message]
    if not answers:
        return None
    dice.choice(answers)["tool_call_id"] = "call-9-9"
    return "answer_without_call"


def one_id(dice: random.Random, row: dict[str, Any]) -> str | None:
    several = [m for m in row["messages"] if len(m.get("tool_calls", ())) > 1 and "id" in m["tool_calls"][0]]
    if not several:
        return None
    calls = dice.choice(several)["tool_calls"]
    calls[0]["id"] = calls[1]["id"]
    return "unanswered_call"


def ends_early(dice: random.Random, row: dict[str, Any]) -> str:
    place = dice.choice([place for place, message in enumerate(row["messages"]) if "tool_calls" in message])
    del row["messages"][place + 1 :]
    return "unanswered_call"


MUTATIONS: tuple[Callable[[random.Random, dict[str, Any]], str | None], ...] = (
    unknown_tool, no_tools, twice, nameless, missing, unnamed_argument, other_type, none_of_enum, emptied_list,
    placeholder, no_answer, answered_twice, no_call, other_id, one_id, ends_early,
)  # fmt: skip


@given(chats())
@settings(max_examples=60, deadline=None)
def test_valid_calls_pass(row):
    assert isinstance(checked(row, strict=True), Document)


@pytest.mark.parametrize("mutation", MUTATIONS)
@given(row=chats(), seed=st.integers(0, 1000))
@settings(max_examples=20, deadline=None)
def test_every_mutation_is_found(mutation, row, seed):
    if (reason := mutation(random.Random(seed), row)) is not None:
        dropped = checked(row)
        assert isinstance(dropped, Drop) and dropped.detail
        # of two mistakes the first is named
        assert dropped.reason == reason or (mutation, dropped.reason) == (one_id, "answer_without_call")


@given(chats(), st.sampled_from(MUTATIONS), st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_what_is_cut_is_valid(row, mutation, seed):
    mutation(random.Random(seed), row)
    left = checked(row, cut=True)
    if isinstance(left, Document):
        assert left.row is not None and left.row["messages"][-1]["role"] == "assistant"
        assert isinstance(ToolCalls().open()(left), Document)
    else:
        assert isinstance(left, Drop)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = (
    "type", "properties", "required", "items", "enum", "const", "anyOf", "allOf", "$ref", "minimum", "minItems",
    "additionalProperties", "nullable", "default", "maxLength",
)  # fmt: skip


@given(json_values, st.dictionaries(st.sampled_from(KEYS), json_values, max_size=6))
@settings(max_examples=150, deadline=None)
def test_no_schema_raises(value, schema):
    assert isinstance(mistakes(value, argument_schema({"parameters": schema})), list)
    assert isinstance(checked_with(schema, value), Document | Drop)


def checked_with(schema: Any, value: Any) -> Document | Drop:
    messages = [
        {"role": "user", "content": "?"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"function": {"name": "f", "arguments": {"a": value}}}],
        },
    ]
    return checked({"messages": messages, "tools": [{"name": "f", "parameters": schema}]}, ends_in_call=True)


def test_schemas_may_refer_to_themselves():
    tree = {
        "type": "object",
        "properties": {"next": {"$ref": "#"}, "n": {"type": "integer"}},
        "required": ["n"],
    }
    assert mistakes({"n": 1, "next": {"n": 2, "next": {"n": "3"}}}, tree) == [
        'next.next.n is "3", not an integer'
    ]
    endless = {"$ref": "#/a", "a": {"$ref": "#"}}
    assert mistakes({}, endless) == []


@pytest.mark.parametrize(
    ("written", "types"),
    [
        ("int, optional", ("integer", "null")),
        ("List[str]", ("array",)),
        ("Optional[float]", ("number", "null")),
        ("Union[int, str]", ()),
        ("datetime", ()),
        (["string", "null"], ("string", "null")),
        (None, ()),
    ],
)
def test_types_as_python_writes_them(written, types):
    assert types_of({"type": written}) == types


def test_properties_may_stand_where_the_schema_should():
    schema = argument_schema(
        {"parameters": {"query": {"type": "str"}, "n": {"type": "int", "default": None}}}
    )
    assert mistakes({"query": "a", "n": None}, schema) == []
    assert mistakes({"query": 1}, schema) == ["query is 1, not a text"]
    assert mistakes({"other": 1}, schema, strict=True) == ["other is none of its parameters"]


def test_json_tells_true_from_one():
    assert is_of(3.0, "integer") and not is_of(True, "integer") and not is_of(3.5, "integer")
    assert mistakes({"a": True}, {"properties": {"a": {"enum": [1, "x"]}}})
    assert mistakes({"a": 1.0}, {"properties": {"a": {"enum": [1, "x"]}}}) == []


@pytest.mark.parametrize(
    "text", ["<b>bold</b>", "a < b > c", "my name is Ann", "your idea", "Paris", "", "x" * 9000]
)
def test_text_is_no_placeholder(text):
    assert not is_placeholder(text)


def test_a_placeholder_of_the_user_is_no_mistake():
    row = {
        "messages": [
            {"role": "user", "content": "Greet <name> in the template."},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"function": {"name": "f", "arguments": {"to": "<name>"}}}],
            },
        ],
        "tools": [{"name": "f", "parameters": {"type": "object", "properties": {"to": {"type": "string"}}}}],
    }
    assert isinstance(checked(row, ends_in_call=True), Document)
    row["messages"][0]["content"] = "Greet her."
    assert checked(row, ends_in_call=True) == Drop("placeholder", "f: <name>")
    assert isinstance(checked(row, ends_in_call=True, placeholders=True), Document)


def test_one_message_may_answer_all_calls():
    calls = [{"function": {"name": "f", "arguments": {}}}] * 2
    row = {
        "messages": [
            {"role": "user", "content": "?"},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "content": '[{"a": 1}, {"a": 2}]'},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [{"name": "f"}],
    }
    assert isinstance(checked(row), Document)


def test_the_last_good_answer_ends_what_is_cut():
    roles = ["user", "assistant", "user", "assistant", "user", "assistant"]
    messages = [{"role": role, "content": role} for role in roles]
    messages[3]["tool_calls"] = [{}]
    left = [cut_before({"messages": messages}, place) for place in range(8)]
    assert [0 if row is None else len(row["messages"]) for row in left] == [0, 0, 2, 2, 2, 2, 6, 6]
