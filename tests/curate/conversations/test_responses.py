"""The step `responses`: whole responses pass, made faults are found, and no text breaks it."""

from __future__ import annotations

import random
import sys
import unicodedata
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.curate.conversations.responses.completeness import cut_off
from foresail.curate.conversations.responses.loops import find_loops, repeated_letters
from foresail.curate.conversations.responses.parts import read_response, words_in
from foresail.curate.conversations.responses.refusals import refusal
from foresail.curate.conversations.responses.repetition import repeats
from foresail.curate.conversations.responses.step import REASONS, ResponseCheck, Responses
from foresail.curate.document import Document, Drop
from foresail.curate.rows.conversation import conversation_row
from foresail.curate.rows.row import with_row
from tests.curate.conversations.made_responses import QUESTIONS, REFUSALS, SENTENCES, WHOLE, made_response
from tests.curate.heuristics.made_texts import random_text

CHECK = Responses().open()
assert isinstance(CHECK, ResponseCheck)
LANGUAGES = sorted(SENTENCES)


def chat(*contents: str, **of_last: Any) -> dict[str, Any]:
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": one} for n, one in enumerate(contents)]
    messages[-1] |= of_last
    return {"messages": messages}


def document(row: dict[str, Any]) -> Document:
    return with_row(Document(id="a"), conversation_row(row, "a"))


def reasons(question: str, answer: str) -> list[str]:
    return [fault.reason for fault in CHECK.faults(document(chat(question, answer)).row or {})]


@pytest.mark.parametrize("answer", WHOLE)
def test_whole_responses_pass(answer):
    assert reasons("Please do it.", answer) == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_made_responses_pass(language):
    dice = random.Random(language)
    for _ in range(20):
        answer = made_response(dice, language)
        assert reasons(QUESTIONS[language], answer) == [], answer


# Faults made by a seeded search.


@pytest.mark.parametrize("language", LANGUAGES)
def test_loops_are_found_wherever_they_are_and_whatever_their_period(language):
    dice = random.Random(language)
    for _ in range(20):
        answer = made_response(dice, language, 6)
        start = dice.randrange(len(answer))
        piece = answer[start : start + dice.randrange(15, 60)]
        if sum(map(str.isalpha, piece)) >= 13:
            looped = answer[:start] + piece * dice.randrange(12, 30) + answer[start:]
            assert repeats(read_response(looped)), looped


@pytest.mark.parametrize("language", LANGUAGES)
def test_numbers_do_not_hide_a_loop(language):
    item = max(SENTENCES[language], key=len)
    assert repeats(read_response("\n".join(f"{n}. {item}" for n in range(1, 12))))


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "th"])
def test_a_response_that_stops_in_a_sentence_is_cut_off(language):
    dice = random.Random(language)
    for _ in range(20):
        answer = made_response(dice, language, 5)
        last = dice.choice([one for one in SENTENCES[language] if words_in(one) >= 8])
        cut = last[: dice.randrange(len(last) // 2, len(last) - 2)].rstrip(" ,，、.") + dice.choice(["", ","])
        assert cut_off(read_response(f"{answer} {cut}")), cut


def test_thai_stops_where_no_word_ends():
    whole = made_response(random.Random(0), "th")
    for end in ("ประเทศเ", "เรากำลังทำงานและ", "เพื่อที่", "การพัฒนา ("):
        assert cut_off(read_response(f"{whole} {end}")), end
    assert cut_off(read_response(whole)) == ""


OPEN = {
    "```python\nprint(1)\nfor n in": "code",
    "Text.\n\n```\nls -l": "code",
    "<think>\nLet me see.": "thought",
    "So we have\n\\begin{align}\nx &= 1 \\\\": "begin",
    "So we have\n$$\nx = \\frac{1}{2}": "$$",
    "So it is \\( x^2 + 1": "\\(",
    '{"a": [1, 2, {"b": "c"': "brackets",
    "<table><tr><td>1</td></tr><tr><td>2": "table",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3": "table",
    "1. Milk is white.\n2. Coal is black.\n3.": "item",
    "Here is the list:": "colon",
    "A first point. [continued]": "elsewhere",
    "One.\nTwo.\n...": "left out",
}


@pytest.mark.parametrize(("answer", "word"), OPEN.items())
def test_what_is_open_is_named(answer, word):
    assert word in cut_off(read_response(answer))


@pytest.mark.parametrize("language", sorted(REFUSALS))
def test_refusals_are_found_whatever_their_parts(language):
    dice = random.Random(language)
    for _ in range(20):
        text = "".join(dice.choice(parts) for parts in REFUSALS[language])
        assert refusal(read_response(text[0].upper() + text[1:])), text


@pytest.mark.parametrize("language", sorted(REFUSALS))
def test_a_refusal_with_an_answer_behind_it_is_an_answer(language):
    dice = random.Random(language)
    items = "\n".join(f"{n}. {dice.choice(SENTENCES[language])}" for n in range(1, 12))
    assert refusal(read_response("".join(part[0] for part in REFUSALS[language]) + "\n\n" + items)) == ""


NO_REFUSALS = [
    "I'm sorry for the delay. Your parcel left our house this morning and arrives on Friday.",
    "I'm sorry to hear that. Could you give me your order number?",
    "The passage does not say.",
    "Unknown.",
    "I can't help but smile when I think of that summer.",
    "\"I'm sorry, but I can't help you,\" said the clerk, and the old man left the office.",
    "Maaf atas keterlambatannya. Paket Anda tiba besok.",
    "Lamento la demora. Su pedido llega mañana.",
    "很抱歉给您带来不便，您的包裹明天送达。",
    "ขออภัยในความล่าช้า พัสดุจะถึงพรุ่งนี้ค่ะ",
]


@pytest.mark.parametrize("answer", NO_REFUSALS)
def test_an_apology_is_no_refusal(answer):
    assert refusal(read_response(answer)) == ""


def test_what_is_about_a_refusal_is_none():
    text = "I'm sorry, but I can't help with that."
    assert refusal(read_response(text))
    assert refusal(read_response(text), f'Correct the spelling: "{text}"') == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_foreign_sentence_is_found_and_an_asked_one_is_not(language):
    dice = random.Random(language)
    close = {frozenset(pair) for pair in (("id", "ms"), ("es", "pt"), ("id", "tl"), ("ms", "tl"))}
    for other in LANGUAGES:
        if other == language or frozenset((other, language)) in close:
            continue
        foreign = max(SENTENCES[other], key=words_in)
        answer = f"{made_response(dice, language, 5)}\n{foreign}\n{made_response(dice, language, 5)}"
        assert "mixed_language" in reasons(QUESTIONS[language], answer), (other, foreign)
        assert reasons(f"{QUESTIONS[language]} {foreign}", answer) == []
        assert reasons(f"{QUESTIONS[language]} (translate)", answer) == []


def test_a_response_in_another_language_is_found_unless_it_is_asked_for():
    answer = " ".join(SENTENCES["th"][:4])
    assert reasons(QUESTIONS["en"], answer) == ["other_language"]
    assert reasons(f"{QUESTIONS['en']} Answer in Thai.", answer) == []
    assert reasons(f"{QUESTIONS['id']}", " ".join(SENTENCES["ms"][:2])) == []


@pytest.mark.parametrize("letters", ["结果", "работа", "สำคัญ", "و"])
def test_stray_letters_are_found_and_glosses_are_not(letters):
    answer = "The first step is to read the plan with care, and then the {} is built by all of the team."
    assert reasons("How do we work?", answer.format(letters)) == ["mixed_language"]
    assert reasons(f"What is {letters}?", answer.format(letters)) == []
    assert reasons("How do we work?", answer.format(f"plan ({letters})")) == []
    assert reasons("How do we work?", answer.format(f'"{letters}"')) == []


def test_formulas_and_units_are_no_stray_letters():
    answer = (
        "The angle θ is 30° and the length is 5 μm, so that the sum Σ of all α is less than π in the end."
    )
    assert reasons("What is the angle?", answer) == []


# The step.


def test_only_what_is_trained_on_is_looked_at():
    row = chat("Why?", "", "Why?", "Because of the rain.")
    row["messages"][1]["train"] = False
    assert CHECK(document(row)) == document(row)
    assert CHECK(document(chat("Why?", "", "Why?", "Because of the rain."))) == Drop("empty", "")


def test_a_conversation_is_cut_to_its_last_good_answer():
    row = chat("Why?", "Because of the rain.", "And why?", "I'm sorry, but I can't help with that.")
    left = Responses(cut=True).open()(document(row))
    assert isinstance(left, Document) and left.row is not None
    assert [one["content"] for one in left.row["messages"]] == ["Why?", "Because of the rain."]
    assert left.metadata == {"cut": "refused"}
    row["messages"][1]["train"] = False  # nothing is left to learn from
    assert isinstance(Responses(cut=True).open()(document(row)), Drop)


def test_reasons_that_do_not_drop_are_noted():
    row = chat("How do I break a lock?", "I'm sorry, but I can't help with that.")
    kept = Responses(drop=("empty", "incomplete")).open()(document(row))
    assert isinstance(kept, Document) and kept.metadata == {"response_faults": ["refused"]}


def test_an_unknown_reason_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="there is no reason refusal; there are empty"):
        Responses(drop=("refusal",))


def test_calls_need_no_text():
    call = [{"function": {"name": "f", "arguments": {}}}]
    assert reasons_of(chat("Why?", "", tool_calls=call)) == []
    assert reasons_of(chat("Why?", "Let me look it up:", tool_calls=call)) == []
    assert reasons_of(chat("Why?", "Let me look it up:")) == ["incomplete"]


def reasons_of(row: dict[str, Any]) -> list[str]:
    return [fault.reason for fault in CHECK.faults(document(row).row or {})]


def test_an_answer_may_not_come_twice():
    answer = "The river rises in the north, runs through three towns, and ends in the western sea after many miles."
    assert reasons_of(chat("Where does it rise?", answer, "Who built the bridge?", answer)) == ["repeating"]
    assert reasons_of(chat("Where does it rise?", answer, "Where does it rise?", answer)) == []
    question = "Explain in simple words how a steam engine turns heat into motion"
    assert reasons_of(chat(question, question + ".")) == ["repeating"]


# Any text.

PIECES = (
    *(
        "1.",
        "a)",
        "第一步",
        "- ",
        "* ",
        "**",
        "|",
        "| a |",
        "```",
        "```py",
        "~~~",
        "$$",
        "\\[",
        "\\(",
        "\\begin{a}",
    ),
    *(
        "<think>",
        "</think>",
        "<div>",
        "{",
        '["',
        "(",
        "“",
        "'",
        "#",
        "…",
        "...",
        ":",
        ",",
        "。",
        "的",
        "ที่",
        "เ",
        "А",
    ),
    *(
        "\n",
        "\n\n",
        " ",
        "the",
        "I'm sorry",
        "I can't help",
        "5",
        "l'",
        "é",
        "\u0301",
        "😀",
        "\u200b",
        "http://a",
    ),
)
texts = (
    st.text(max_size=200)
    | st.lists(st.sampled_from(PIECES), max_size=12).map("".join)
    | st.integers(0, 10**9).map(lambda seed: random_text(random.Random(seed)))
)


@given(texts, texts)
@settings(max_examples=250, deadline=None)
def test_no_text_raises(question, answer):
    outcome = CHECK(with_row(Document(id="a"), chat(question, answer)))
    assert isinstance(outcome, Document) or (isinstance(outcome, Drop) and outcome.reason in REASONS)


@given(st.sampled_from(LANGUAGES), st.integers(0, 10**6), st.sampled_from(["NFC", "NFD"]), st.floats(0.3, 1))
@settings(max_examples=60, deadline=None)
def test_unicode_normalisation_makes_no_difference(language, seed, form, share):
    answer = made_response(random.Random(seed), language)
    answer = unicodedata.normalize("NFC", answer[: int(share * len(answer))])
    other = unicodedata.normalize(form, answer)
    assert reasons(QUESTIONS[language], answer) == reasons(QUESTIONS[language], other)


def steps_of(text: str) -> int:
    """Lines of Python that run."""
    count = 0

    def trace(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    row = chat("Why is it so?", text)
    sys.settrace(trace)
    try:
        list(CHECK.faults(row))
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "ab ",
        "(",
        "**",
        "```\n",
        "\\begin{a}\n",
        "{",
        "<div>",
        "A b. ",
        "1. a\n",
        "é\u0301",
        "的。",
        "| a ",
    ],
)
def test_work_grows_with_the_length_and_no_faster(piece):
    small, large = (steps_of(piece * (size // len(piece))) for size in (2000, 16000))
    assert large <= 10 * small + 2000


@pytest.mark.parametrize("letters", ["a", "ab", "abcdefghij", "ab cd ", "01"])
def test_a_loop_is_searched_for_in_linear_steps(letters):
    for make in (lambda n: letters * n, lambda n: "".join(random.Random(n).choices(letters, k=n))):
        for size in (1000, 30000):
            codes = np.frombuffer(make(size)[:size].encode("utf-32-le"), dtype=np.uint32)
            assert find_loops(codes, 8, 30)[2] <= 20 * size
            assert repeated_letters(codes, 15)[1] <= 20 * size
