"""The table of words by meaning and language, and how a new language is added to it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from foresail.maths.lexicon.table import TABLE, first_words, pattern, read_language, spaced, words_for
from foresail.maths.verdict import grade

LETTERS = re.compile(r"[^\W\d_]")


def test_a_new_language_is_one_file(tmp_path: Path) -> None:
    file = tmp_path / "swedish.txt"
    file.write_text("# not 7\ndenial: inte | ej\n    | aldrig\nor: eller\n", encoding="utf-8")

    rows = list(read_language(file))

    assert [(row.meaning, row.language, row.word) for row in rows] == [
        ("denial", "swedish", "inte"),
        ("denial", "swedish", "ej"),
        ("denial", "swedish", "aldrig"),
        ("or", "swedish", "eller"),
    ]
    assert all(row.is_spaced for row in rows)


def test_a_script_without_blanks_says_so(tmp_path: Path) -> None:
    file = tmp_path / "chinese.txt"
    file.write_text("unspaced: yes\ndenial: 不\n", encoding="utf-8")

    assert [row.is_spaced for row in read_language(file) if row.meaning == "denial"] == [False]


def test_every_row_is_an_expression_and_stands_once() -> None:
    for row in TABLE:
        re.compile(row.word)
    assert len(set(TABLE)) == len(TABLE)


@pytest.mark.parametrize(
    "meaning", ["denial", "wrong", "taken back", "doubt", "disbelief", "or", "correction", "modal"]
)
def test_a_row_is_known_by_the_words_it_begins_with(meaning: str) -> None:
    unknown = [word for word in words_for(meaning) if not list(first_words(word))]

    assert all(word.startswith(r"\w") or not LETTERS.match(word) for word in unknown), unknown


@pytest.mark.parametrize(
    ("word", "beginnings"),
    [
        ("not sure", [("not", False)]),
        ("fails?", [("fail", True)]),
        (r"contradict\w*", [("contradict", True)]),
        ("(?:pense|crois) pas", [("pense", False), ("crois", False)]),
        (r"(?<!\bif )not", [("not", False)]),
        ("don[’']t know", [("don", False)]),
    ],
)
def test_first_words(word: str, beginnings: list[tuple[str, bool]]) -> None:
    assert list(first_words(word)) == beginnings


def test_words_count_as_whole_words_where_blanks_part_them() -> None:
    also = re.compile(pattern("also"))

    assert also.search("es ist auch 8")
    assert not also.search("Bauch")
    assert also.search("答案也是8")


def test_an_unknown_meaning_is_our_mistake() -> None:
    with pytest.raises(KeyError, match="denail"):
        spaced("denail")


@pytest.mark.parametrize(
    "word", [row.word for row in TABLE if row.meaning == "denial" and row.word.isalpha()]
)
def test_every_denial_rules_out_an_answer(word: str) -> None:
    assert grade(rf"{word} \boxed{{7}}", "7").status != "correct"
