"""The files of the languages: each says everything that English says, with the same slots."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.data.made.shop.catalogue import TASKS
from foresail.data.made.shop.language import LANGUAGES, read_language
from foresail.data.made.shop.read_table import is_safe
from foresail.data.made.shop.rows import BARE
from foresail.rewards.structured.final_answer import find_answer
from foresail.rewards.structured.values import read_number


def leaves(tree: Any, *path: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield from leaves(value, *path, key)
    else:
        yield path, tree


def slots(phrase: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(phrase) if name is not None}


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_phrase_is_there_with_its_slots(code: str) -> None:
    english, phrases = (dict(leaves(read_language(one).phrases)) for one in ("en", code))
    own = ("features", "attributes")  # each language has phrases for attributes of its choice
    assert {path for path in english if path[:2] != own} == {path for path in phrases if path[:2] != own}
    for path, phrase in phrases.items():
        if path[:2] == own:
            assert slots(phrase) == {"value"}, path
            continue
        needed = {name for one in listed(english[path]) for name in slots(one)}
        for one in listed(phrase):
            assert slots(one) == needed, (code, path, one)
        if path[-1] == "train":
            tests = listed(phrases[*path[:-1], "test"])
            assert not {*listed(phrase)} & {*tests} - {""}, (code, path)


def listed(phrase: str | list[str]) -> list[str]:
    return [phrase] if isinstance(phrase, str) else phrase


@pytest.mark.parametrize("code", LANGUAGES)
def test_words_of_the_frame_are_all_there(code: str) -> None:
    english, words = read_language("en").words, read_language(code).words
    for table in ("marks", "labels"):
        assert words[table].keys() == english[table].keys()
    assert "other" in words["currency"] and words["yes"] and words["no"] and words["and"]
    assert {*words["yes"]}.isdisjoint(words["no"])
    assert {words["yes"][0], words["no"][0]} <= {*words["nothing"]}
    assert slots(words["marks"]["pair"]) == {"attribute", "value"}
    assert all(slots(pattern) == {""} for pattern in words["measures"].values())


@pytest.mark.parametrize("code", LANGUAGES)
def test_words_stay_apart_and_lists_can_be_read(code: str) -> None:
    """Two attributes that read the same would be one, and a value with a separator would be two."""
    words = read_language(code).words
    for kind in ("attributes", "categories"):
        assert len({*words[kind].values()}) == len(words[kind]), kind
    names: dict[str, set[str]] = {}
    for name, value in words["values"].items():
        if ":" not in name:
            names.setdefault(value, set()).add(name)
    alike = [{"grey", "gray"}, {"space grey", "space gray"}]
    of_two_products = [{"automatic", "auto tilt"}, {"manual", "manual tilt"}, {"wood", "woody"}]
    assert all(len(one) == 1 or one in alike + of_two_products for one in names.values()), names
    for value in [*words["values"].values(), *words["attributes"].values()]:
        assert is_safe(value) and not set(value) & set(",、，；"), value


@pytest.mark.parametrize("code", LANGUAGES)
def test_answers_stand_after_a_label_that_the_grader_reads(code: str) -> None:
    language = read_language(code)
    label, colon = language.label("answer"), language.marks["colon"]
    assert find_answer(f"42\n{label}{colon}B").text == "B"
    for kind, phrases in language.phrases["instructions"].items():
        for phrase in [*phrases["train"], *phrases["test"]]:
            assert (f"“{label}{colon.strip()}" in phrase) == (kind not in BARE), phrase


@given(st.integers(0, 10**9), st.sampled_from(LANGUAGES), st.sampled_from(["USD", "EUR", "XYZ"]))
def test_amounts_are_read_back_by_the_grader(hundredths: int, code: str, currency: str) -> None:
    language = read_language(code)
    money = language.money(hundredths, currency, 2)
    decimal = language.marks["decimal"]
    units = [unit.casefold() for unit in language.units(currency)]
    assert read_number(money, decimal, units) == Decimal(hundredths) / 100


def test_every_task_has_phrases() -> None:
    phrases = read_language("en").phrases
    for task, forms in TASKS.items():
        for form in forms:
            assert len(phrases[task][form.name]["train"]) >= 2 and phrases[task][form.name]["test"]
            assert form.kind in phrases["instructions"]
