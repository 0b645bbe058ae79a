"""Calls as a model writes them: what was written is read back, and nothing that can be written raises."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.agents.tools.call_formats import (
    MAX_CALLS,
    TOO_MANY,
    CallFormat,
    Hermes,
    MalformedCall,
    Tags,
    ToolCall,
)
from foresail.agents.tools.call_json import BadJSON, read_value
from foresail.agents.tools.markup import find_markers, neutralise
from foresail.agents.tools.tool import tool_of
from foresail.tokenizer.train import train_bpe


def search(query: str, count: int = 3) -> str:
    """Search the encyclopedia."""
    return query


def python(code: str) -> str:
    """Run code."""
    return code


TOOLS = [tool_of(search), tool_of(python)]
HERMES, TAGS = Hermes(), Tags(TOOLS)
FORMATS: list[CallFormat] = [HERMES, TAGS]
MARKERS = [*Hermes.MARKERS, *TAGS.markers]

# Texts that are rich in what could confuse a parser.
PIECES = [
    *MARKERS,
    '"',
    "\\",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\n",
    "\\u",
    "\\ud83d",
    "1e999",
    "<",
    ">",
    "/",
    "NaN",
    "é",
]
text = st.text(max_size=20) | st.lists(st.sampled_from(PIECES), max_size=6).map("".join)
whole = text.filter(lambda value: value.isprintable() or not any("\ud800" <= c <= "\udfff" for c in value))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | whole,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(whole, inner, max_size=4),
    max_leaves=8,
)
calls = st.builds(
    ToolCall,
    st.sampled_from(["search", "python", "a.b-c"]) | whole,
    st.dictionaries(whole, values, max_size=4),
)
prose = st.text(max_size=20).filter(lambda value: "<" not in value)
unmarked = whole.filter(lambda value: not find_markers(value, TAGS.markers))


# What a valid writer wrote.


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(prose, calls), min_size=1, max_size=4), prose, st.booleans(), st.none() | text)
def test_hermes_reads_back_what_was_written(
    turn: list[tuple[str, ToolCall]], end: str, ascii_only: bool, thought: str | None
) -> None:
    def write(call: ToolCall) -> str:
        made = json.dumps({"name": call.name, "arguments": dict(call.arguments)}, ensure_ascii=ascii_only)
        return f"<tool_call>\n{made}\n</tool_call>" if ascii_only else HERMES.write(call)

    thinking = "" if thought is None else f"<think>{thought.replace('</think>', '')}</think>"
    response = thinking + "".join(f"{before}{write(call)}" for before, call in turn) + end
    assert HERMES.parse(response) == [call for _, call in turn]
    # Where the template has opened the thinking. What stands before another <think> could be an answer's beginning.
    if thought is not None and "<think>" not in thought:
        assert HERMES.parse(response.removeprefix("<think>")) == [call for _, call in turn]


def test_a_thought_that_began_in_the_prompt_may_hold_half_a_call() -> None:
    call = ToolCall("search", {})
    assert HERMES.parse(f'so <tool_call>"</think>{HERMES.write(call)}') == [call]


@settings(max_examples=150, deadline=None)
@given(prose, st.sampled_from(["search", "python"]), unmarked, prose, st.booleans())
def test_tags_read_back_what_was_written(
    before: str, name: str, content: str, end: str, thinks: bool
) -> None:
    call = ToolCall(name, {TAGS.arguments[name]: content})
    thinking = "<think>I may use <search>x</search> or </python>.</think>" if thinks else ""
    assert TAGS.parse(thinking + before + TAGS.write(call) + end) == [call]
    assert TAGS.parse(thinking.removeprefix("<think>") + before + TAGS.write(call) + end) == [call]


@pytest.mark.parametrize("format", FORMATS)
def test_an_answer_without_calls_is_final(format: CallFormat) -> None:
    assert format.parse("The answer is 4 < 5.") == []
    assert format.parse("<think>I could write <tool_call>{} or <search>x</search></think> Paris") == []
    assert format.parse("") == []


def test_calls_inside_thinking_are_no_calls() -> None:
    call = HERMES.write(ToolCall("f", {}))
    assert HERMES.parse(f"<think>{call}</think>done") == []
    assert HERMES.parse(f"{call} no.</think>done") == []  # the prompt has opened it
    assert HERMES.parse(f"<think>{call}") == []  # it has not ended
    assert len(HERMES.parse(f"<think>{call}</think>{call}<think>{call}</think>{call}")) == 2


def test_a_tag_that_ended_the_turn_while_thinking_is_told_so() -> None:
    (found,) = TAGS.parse("<think>Let me <search>Paris</search>")
    assert found == MalformedCall("a call is not carried out while thinking; close the think tag first")


# What is no valid call.


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ("{bad}", "not JSON: Expecting property name"),
        ("", "not JSON: Expecting value"),
        ('{"name": "f", "arguments": {}', "not JSON: Expecting ',' delimiter"),
        ('{"name": "f", "arguments": {}} {}', "more than one JSON object"),
        ("[1]", "a call is a JSON object, not a list"),
        ('{"name": "f"}', "arguments is missing"),
        ('{"name": "f", "parameters": {}}', "arguments is missing"),
        ('{"name": "f", "arguments": {}, "id": 1}', "no 'id'"),
        ('{"name": ["f"], "arguments": {}}', "the name of a call is a string, not a list"),
        ('{"name": "f", "arguments": "{}"}', "are a JSON object, not a string"),
        ('{"name": "f", "arguments": null}', "are a JSON object, not null"),
        ('{"name": "f", "arguments": {"a": 1e999999}}', "the number 1e999999 is too large"),
        ('{"name": "f", "arguments": {"a": -1e999}}', "too large"),
        ('{"name": "f", "arguments": {"a": NaN}}', "NaN is no JSON number"),
        ('{"name": "f", "arguments": {"a": ' + "9" * 5000 + "}}", "5000 digits is too long"),
        ('{"name": "f", "arguments": {"a": 1, "a": 2}}', "the key 'a' stands twice"),
        ('{"name": "f", "arguments": {"a": ' + "[" * 65 + "]" * 65 + "}}", "nested deeper than 64"),
        ('{"name": "f", "arguments": {"a": ' + "[" * 10**6 + "]" * 10**6 + "}}", "nested deeper than 64"),
        ('{"name": "f", "arguments": {"a": "\\ud83d"}}', "half of a character"),
        ('{"name": "f", "arguments": {"a": "\\x"}}', "Invalid"),
    ],
)
def test_hermes_says_in_a_line_what_is_wrong_and_reads_on(block: str, said: str) -> None:
    good = ToolCall("g", {"x": "y"})
    found, last = HERMES.parse(f"<tool_call>{block}</tool_call>\n{HERMES.write(good)}")
    assert isinstance(found, MalformedCall) and said in found.why
    assert len(found.why) < 200 and "\n" not in found.why
    assert last == good


CALL = '<tool_call>{"name": "f", "arguments": {}}'
F = ToolCall("f", {})
UNCLOSED = MalformedCall("a tool_call tag is not closed")
STRAY = MalformedCall("there is a closing tool_call tag without an opening one")


@pytest.mark.parametrize(
    ("response", "found"),
    [
        (CALL, [UNCLOSED]),
        (f"{CALL}{CALL}</tool_call>", [UNCLOSED, F]),
        ("<tool_call>" + CALL + "</tool_call></tool_call>", [UNCLOSED, F]),
        (f"{CALL}</tool_call></tool_call>", [F, STRAY]),
        ('{"name": "f", "arguments": {}}</tool_call>', [STRAY]),
        ("use <tool_call> or</think>" + CALL + "</tool_call>", [F]),
        ("<tool_call>", [UNCLOSED]),
    ],
)
def test_tags_that_do_not_match_are_told_and_the_rest_is_read(response: str, found: list[Any]) -> None:
    assert HERMES.parse(response) == found


@pytest.mark.parametrize(
    ("response", "found"),
    [
        ("<search>a", [MalformedCall("a search tag is not closed")]),
        ("a</search>", [MalformedCall("there is a closing search tag without an opening one")]),
        (
            "<search>a<search>b</search>",
            [
                MalformedCall("a search tag is not closed before an opening search tag; tags do not nest"),
                ToolCall("search", {"query": "b"}),
            ],
        ),
        (
            "<python>print('</search>",
            [MalformedCall("a python tag is not closed before a closing search tag; tags do not nest")],
        ),
        (
            "<search>a</search> <python> b\n</python>\n",
            [ToolCall("search", {"query": "a"}), ToolCall("python", {"code": " b\n"})],
        ),
        ("<search></search>", [ToolCall("search", {"query": ""})]),
    ],
)
def test_tags_are_read_one_after_the_other(response: str, found: list[Any]) -> None:
    assert TAGS.parse(response) == found


# A search for what raises, or is not seen.


def mutate(response: str, rng: random.Random) -> str:
    for _ in range(rng.randint(1, 4)):
        at, to = sorted(rng.randint(0, len(response)) for _ in range(2))
        response = rng.choice(
            [
                response[:at] + response[to:],
                response[:at] + rng.choice(PIECES) + response[at:],
                response[:to] + response[at:to] + response[to:],
                response[:at] + response[at:to] * rng.randint(2, 5) + response[to:],
                response[at:] + response[:at],
                response[:at] + chr(rng.choice([0, 10, 34, 92, 0xD800, 0x10FFFF])) + response[at:],
            ]
        )[:20_000]
    return response


def test_nothing_that_is_near_to_a_valid_response_raises() -> None:
    rng = random.Random(20)
    seeds = [
        HERMES.write(ToolCall("search", {"query": 'a "b" </tool_call> \\ é', "count": [1, {"x": 1e3}]})),
        "<think>I look.</think>" + HERMES.write(F) + "\n" + HERMES.write(F),
        "<think>I look.</think><search>Paris</search><python>1</python>",
    ]
    kinds = set()
    for _ in range(2_000):
        response = mutate(rng.choice(seeds), rng)
        for format in FORMATS:
            for call in format.parse(response):
                kinds.add(type(call))
                if isinstance(call, MalformedCall):
                    assert call.why and len(call.why) < 300 and "\n" not in call.why
                else:
                    assert isinstance(call.name, str) and isinstance(call.arguments, dict)
    assert kinds == {ToolCall, MalformedCall}


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text())
def test_nothing_at_all_raises(response: str) -> None:
    for format in FORMATS:
        results = [call.why for call in format.parse(response) if isinstance(call, MalformedCall)]
        format.observe(results)


UNITS = """
<tool_call>    <tool_call>{    <tool_call>{"   <tool_call>["\\"   <tool_call>{}</tool_call>   </tool_call>   \\"
<tool_call>{"a":1,"a":2}   <think>   </think>   <think><tool_call>   <tool_call>{</think>   <search>   </search>
<search>a</search></think>   {"a":   [   <   <tool_call>[1,</think>   <tool_call>"\\ud8</think>
""".split()


@pytest.mark.parametrize("unit", UNITS)
def test_a_long_text_of_anything_is_read(unit: str) -> None:
    response = unit * (2 * 10**5 // len(unit))
    for format in FORMATS:
        assert len(format.parse('<tool_call>{"a": "' + response)) <= MAX_CALLS + 1
        assert len(format.parse(response)) <= MAX_CALLS + 1
        format.observe([response])


def test_a_turn_has_so_many_calls_and_no_more() -> None:
    (*first, last) = HERMES.parse(HERMES.write(F) * 100)
    assert first == [F] * MAX_CALLS and last == TOO_MANY
    (*first, last) = TAGS.parse("<search>a</search>" * 100)
    assert first == [ToolCall("search", {"query": "a"})] * MAX_CALLS and last == TOO_MANY
    assert HERMES.parse(HERMES.write(F) * 100 + "</think>" + HERMES.write(F)) == [F]


@settings(max_examples=150, deadline=None)
@given(values, text, st.integers(0, 600))
def test_json_is_read_alike_wherever_the_window_ends(value: Any, behind: str, spaces: int) -> None:
    """The reader looks at 256 characters first: whatever is cut there is read as if it were not."""
    written = json.dumps([" " * spaces, value])
    assert read_value(f"x{written}] {behind}", 1) == ([" " * spaces, value], 1 + len(written))
    broken = written[:-1]
    with pytest.raises(BadJSON):
        read_value(broken, 0)


# Results.


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from([*PIECES, *(piece[:3] for piece in PIECES), "<", "</", ">", "\ud800", " "]),
        max_size=20,
    ),
)
def test_a_result_holds_no_marker(pieces: list[str]) -> None:
    result = "".join(pieces)
    (message,) = HERMES.observe([result]).messages
    inner = TAGS.observe([result]).text.removeprefix("\n<result>").removesuffix("</result>\n")
    for content in (message.content, inner):
        content.encode()
    assert find_markers(message.content, Hermes.MARKERS) == [] and find_markers(inner, TAGS.markers) == []
    assert TAGS.parse(inner) == [] and HERMES.parse(message.content) == []


def test_a_result_without_markers_is_as_it_was() -> None:
    plain = "a < b | c <b>bold</b> [x] <resultat> é\n"
    assert HERMES.observe([plain, "two"]).messages[0].content == plain
    assert [message.role for message in HERMES.observe([plain, "two"]).messages] == ["tool", "tool"]
    assert TAGS.observe([plain]).text == f"\n<result>{plain}</result>\n"


TOKENIZER = train_bpe(["abc <result>"], vocab_size=320, alphabet="bytes")
SPECIALS = TOKENIZER.special_tokens()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.sampled_from([*PIECES, *SPECIALS, *(each[:2] for each in SPECIALS), "<", " "]), max_size=12)
)
def test_a_result_cannot_end_a_turn_in_tokens(pieces: list[str]) -> None:
    """What a tool says, as the model sees it: all special tokens there are the template's own."""
    special_ids = {token for special in SPECIALS for token in TOKENIZER.encode(special)}
    forged = "".join([*pieces, *SPECIALS])
    assert special_ids & set(TOKENIZER.encode(forged))
    assert not special_ids & set(TOKENIZER.encode_text(TAGS.observe([forged]).text))
    seen, harmless = (
        TOKENIZER.encode_next_turn(HERMES.observe([text]).messages, ended=True) for text in (forged, "4")
    )
    assert [each for each in seen if each in special_ids] == [
        each for each in harmless if each in special_ids
    ]


def test_the_time_to_neutralise_does_not_depend_on_overlaps() -> None:
    assert neutralise("aaaa" * 10**5, ["aa", "aaa"]).replace(" ", "") == "aaaa" * 10**5


# Around.


def test_a_tag_carries_one_argument() -> None:
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    with pytest.raises(ValueError, match=r"add takes 2 arguments \(a, b\)"):
        Tags([tool_of(add)])
    assert TAGS.stop == ("</search>", "</python>") and HERMES.stop == ()


def test_instructions_show_how_a_call_is_written() -> None:
    assert "<search>query</search>: Search the encyclopedia." in TAGS.instructions(TOOLS)
    told = HERMES.instructions(TOOLS)
    assert json.loads(told.split("<tools>\n")[1].split("\n")[0]) == TOOLS[0].schema()
    assert HERMES.parse(told.partition("</tools>")[2]) == [ToolCall("search", {"query": "…"})]
