"""Answers of a stated form: what is the same, what is not, and that no response makes its own grading fail."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.records import FAILURES, Problem
from foresail.rewards.structured.grade import ballot, grade

OPTIONS = {"A": "red", "B": "A broken lamp", "C": "broken lamp"}
CHECKS: dict[str, tuple[str, dict[str, Any] | None]] = {
    "choice": ("B", {"kind": "choice", "options": OPTIONS}),
    "number": ("1234.5", {"kind": "number", "decimal": ".", "units": ["$", "USD"]}),
    "comma": ("1.234,50", {"kind": "number", "decimal": ",", "units": ["US$"]}),
    "text": ("Velmora", {"kind": "text", "accept": ["Velmora", "the brand Velmora"]}),
    "list": ("S, M", {"kind": "list", "items": ["S", "M"], "and": [" and "]}),
    "json": ('{"size": "11", "price": 9.5, "line": null, "options": {"color": "red"}}', {"kind": "json"}),
    "constraints": (
        "Velmora lamp red",
        {"kind": "constraints", "contains": ["Velmora", "red"], "excludes": ["blue"], "max_words": 5},
    ),
    "by itself": ('{"a": [1, "x"]}', None),
}


def problem(name: str) -> Problem:
    answer, check = CHECKS[name]
    return Problem(id=name, prompt=(), answer=answer, extra={"check": check} if check else {})


RIGHT = {
    "choice": ["B", "(b)", "Answer: B", "It is clear.\n**Answer:** B.", r"So \boxed{B}", "A broken lamp",
               "คำตอบ: B", "B. A broken lamp", "<think>Answer: C</think>答案：B", "Answer:\nB",
               "Answer: B\nAnswer: b"],
    "number": ["1234.5", "$1,234.50", "1,234.5 USD", "Answer: 1234.50", "Answer: $ 1234.5."],
    "comma": ["1.234,50", "1234,5", "1234.50", "US$ 1.234,50", "Resposta: US$ 1.234,5"],
    "text": ["velmora", "Answer: “Velmora”.", "the brand Velmora"],
    "list": ["M, S", "S and M", "Answer: M; S", '["S", "M"]', "- x\nAnswer: S, M"],
    "json": ['```json\n{"options": {"color": "Red"}, "line": null, "price": 9.50, "size": 11}\n```',
             'Here: {"size":"11","price":9.5,"line":null,"options":{"color":"red"}}'],
    "constraints": ["red lamp by Velmora", "Answer: Velmora: lamp, red!", "“Velmora Red Lamp”"],
    "by itself": ['{"a": [1, "X"]}'],
}  # fmt: skip
WRONG = {
    "choice": ["A", "B or C", "B, C", "C. A broken lamp", "Answer: B\nAnswer: C", r"\boxed{B} \boxed{A}", "",
               "not B", "<think>B", "broken lamp", "AB", "Answer: B\n\\boxed{C}"],
    "number": ["1234.51", "1,234.5 or 7", "12345", "1234,5", "-1234.5", "1234.5 EUR", "1.2345e3", "0,001234.5"],
    "comma": ["1,234.50", "1.234", "123450", "1.234,5 x"],
    "text": ["Velmora or Ardo", "not Velmora", "V e l m o r a", "Velmora\nArdo"],
    "list": ["S", "S, M, L", "S or M", '["S", ["M"]]', "S M", "Answer: S\nAnswer: M"],
    "json": ['{"size": "11", "price": "9.5", "line": null, "options": {"color": "red"}}',
             '{"size": "11", "price": 9.5, "line": "null", "options": {"color": "red"}}',
             '{"size": "11", "price": 9.5, "options": {"color": "red"}}',
             '{"size": "11", "price": 9.5, "line": null, "options": {"color": "red"}, "x": 1}',
             '{"size": "11", "price": 9.5, "line": null, "options": {"color": "red", "color": "red"}}',
             '{"size": "11", "price": 9.5, "line": null, "options": {"color": "red"}} {}',
             '[{"size": "11", "price": 9.5, "line": null, "options": {"color": "red"}}]',
             '{"size": "11", "price": NaN, "line": null, "options": {"color": "red"}}'],
    "constraints": ["Velmora lamp", "Velmora lamp covered", "Velmora red or blue lamp", "Velmora red a b c d",
                    "Velmora\nred", ""],
    "by itself": ['{"a": ["x", 1]}', '{"a": [true, "x"]}', "a"],
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_the_same_and_not_the_same(name: str) -> None:
    for response in RIGHT[name]:
        assert grade(problem(name), response).status == "correct", response
    for response in WRONG[name]:
        assert grade(problem(name), response).status in ("wrong", "unparsable"), response


PIECES = ["Answer:", "B", "{", "}", "[", "]", '"a"', ":", ",", "\n", "```json\n", r"\boxed{", "<think>",
          "</think>", "1.234,50", "9" * 5000, "{" * 300, "[" * 3000, '{"a":' * 60, "1e999999999999999999999", "NaN",
          "−", "\u200b", "\ud800", "﷽", "٣", "red", "Velmora", "$", "S", " and ", "null", "\x00", "½", "答案：",
          "คำตอบ:", "*" * 500, " " * 500, "\\"]  # fmt: skip


@settings(max_examples=60)
@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=8), max_size=12), st.sampled_from(sorted(CHECKS)))
def test_no_response_makes_its_own_grading_fail(pieces: list[str], name: str) -> None:
    response = "".join(pieces)
    assert grade(problem(name), response).status not in FAILURES
    ballot(response)


@given(
    st.sampled_from(sorted(CHECKS)),
    st.lists(st.sampled_from([*PIECES, "A", "C", "blue", "L", " or "]), min_size=1, max_size=3),
)
def test_what_is_said_beside_the_answer_is_not_paid(name: str, pieces: list[str]) -> None:
    """On the answer's own line: only what is no word may stand there."""
    extra = "".join(pieces)
    said = "".join(letter for letter in extra if letter.isalnum()).casefold()
    verdict = grade(problem(name), f"Answer: {problem(name).answer} or {extra or 'C'}")
    if name not in ("json", "constraints", "by itself") and said and "</think>" not in extra:
        assert verdict.status != "correct" or "\n" in extra or "boxed" in extra, extra


def test_long_responses_take_time_in_proportion() -> None:
    """100,000 characters of what labels and objects are made of; a square of it would take minutes."""
    for piece in ("\n", "Answer:\n", "{", "Answer: B ", "* ", "> \n", '{"a":1}', "red ", "\\boxed{"):
        for name in CHECKS:
            assert grade(problem(name), piece * (100_000 // len(piece))).status not in FAILURES


@pytest.mark.parametrize(
    ("answer", "check"),
    [
        ("D", {"kind": "choice", "options": OPTIONS}),
        ("B", {"kind": "choice"}),
        ("x", {"kind": "number"}),
        ("x", {"kind": "other"}),
        ("x", "not json"),
        ("", {"kind": "text"}),
        ("{", {"kind": "json"}),
        ("lamp", {"kind": "constraints", "contains": ["red"]}),
        ("lamp", {"kind": "constraints"}),
        ("S", {"kind": "list", "items": []}),
    ],
)
def test_a_problem_that_cannot_be_graded_says_so(answer: str, check: Any) -> None:
    one = Problem(id="p", prompt=(), answer=answer, extra={"check": check})
    verdict = grade(one, answer)
    assert verdict.status == "ungradable" and "check" in verdict.detail


def test_votes_are_equal_for_equal_answers() -> None:
    assert ballot("Answer: B") == ballot("b.") != ballot("C")
    assert ballot('{"a": 1.0, "b": "X"}') == ballot('so\n{"b": "x", "a": 1}') is not None
    assert ballot("Answer: A\nAnswer: B") is None and ballot("<think>") is None
    assert json.loads(ballot('{"a": 1}') or "") == {"a": "1"}
