"""Format and language terms: penalties that no response can turn into a gain."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.rewards.shaping import format_penalty, language_penalty
from foresail.rewards.unicode_scripts import count_scripts, dominant_script, foreign_share, script_of

PIECES = st.lists(st.sampled_from(["<think>", "</think>", "a", " ", "\n", "7"]), max_size=8).map("".join)


@pytest.mark.parametrize(
    ("response", "well_formed"),
    [
        ("<think>3+4</think> 7", True),
        (" \n<think>\n3+4\n</think>\n\n7", True),
        ("7", False),
        ("", False),
        ("<think>3+4", False),
        ("<think>3+4</think>", False),
        ("<think>3+4</think> \n", False),
        ("<think></think> 7", False),
        ("<think> \n</think> 7", False),
        ("3+4</think> 7", False),
        ("Well. <think>3+4</think> 7", False),
        ("<think>a</think> b <think>c</think> 7", False),
        ("<think>a<think>b</think> 7", False),
        ("<think>a</think> 7</think>", False),
        ("</think><think>a</think> 7", False),
    ],
)
def test_one_thought_then_an_answer(response: str, well_formed: bool) -> None:
    assert format_penalty(response, weight=0.5) == (0.0 if well_formed else -0.5)


@given(PIECES)
def test_well_formed_means_just_that(text: str) -> None:
    thoughts = text.split("<think>")
    well_formed = (
        len(thoughts) == 2
        and not thoughts[0].strip()
        and thoughts[1].count("</think>") == 1
        and all(part.strip() for part in thoughts[1].split("</think>"))
    )
    assert (format_penalty(text, weight=1.0) == 0.0) is well_formed


@given(st.text(), st.text(), st.floats(0, 10))
def test_penalties_lie_between_minus_the_weight_and_nothing(
    prompt: str, response: str, weight: float
) -> None:
    assert -weight <= language_penalty(prompt, response, weight=weight) <= 0
    assert format_penalty(response, weight=weight) in (0.0, -weight)


@given(st.text(), st.text())
def test_no_weight_no_term(prompt: str, response: str) -> None:
    assert language_penalty(prompt, response, weight=0.0) == format_penalty(response, weight=0.0) == 0.0


# Scripts.


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("What is it?", "Latin"),
        ("Что это?", "Cyrillic"),
        ("这是什么？", "Han"),
        ("これは何ですか", "Han"),
        ("이것은 무엇입니까", "Hangul"),
        ("นี่คืออะไร", "Thai"),
        ("ما هذا", "Arabic"),
        ("यह क्या है", "Devanagari"),
        ("Τι είναι αυτό;", "Greek"),
        ("Ｗｈａｔ ｉｓ", "Latin"),
        ("3 + 4 = ?", None),
        ("x + y = 𝑧, α > β", None),
        ("", None),
    ],
)
def test_the_script_of_a_text(text: str, script: str | None) -> None:
    assert dominant_script(text) == script


@pytest.mark.parametrize(
    "notation",
    [
        "$\\alpha + \\text{abc}$",
        "\\(\\frac{a}{bc}\\)",
        "\\[ \\sin\\theta \\]",
        "$$E = mc^2$$",
        "```python\nprint(answer)\n```",
        "`answer`",
        "x = 5, A, B",
        "https://example.org/some/path",
        "<think></think>",
        "\\boxed{7}",
        "\\frac{3}{4}",
    ],
)
def test_notation_is_in_no_language(notation: str) -> None:
    assert foreign_share(f"Ответ: {notation}", "Cyrillic") == 0.0


def test_words_inside_a_box_are_read() -> None:
    assert foreign_share(r"Ответ: \boxed{seven}", "Cyrillic") == 0.5


def test_a_stray_dollar_hides_one_line_at_most() -> None:
    assert foreign_share("It costs $5.\nЭто много, и $6 тоже.", "Latin") > 0.4


def test_mixing_is_a_share_of_letters() -> None:
    assert foreign_share("ab да", "Latin") == 0.5
    assert foreign_share("ab да", "Cyrillic") == 0.5
    assert foreign_share("123", "Latin") == 0.0
    assert language_penalty("How many?", "Seven", weight=1.0) == 0.0
    assert language_penalty("How many?", "семь", weight=1.0) == -1.0
    assert language_penalty("3+4=?", "семь", weight=1.0) == 0.0  # the prompt is in no language


@given(st.text(alphabet="abcdefgh ийклмн 这是", max_size=60))
def test_shares_of_all_scripts_make_one(text: str) -> None:
    counts = count_scripts(text)
    assert sum(1 - foreign_share(text, script) for script in counts) == pytest.approx(float(bool(counts)))


@given(st.characters())
def test_every_character_has_one_script_or_none(character: str) -> None:
    script = script_of(character)
    assert script is None or (character.isalpha() and script)


@given(st.text(alphabet="абвгд ", min_size=1), st.text(alphabet="0123456789 +-=.,()", max_size=40))
def test_digits_and_signs_change_no_share(words: str, signs: str) -> None:
    assert foreign_share(words + " " + signs, "Latin") == foreign_share(words, "Latin")
