"""The files of the languages: each says everything that English says, with the same slots."""

from __future__ import annotations

from collections.abc import Iterator
from string import Formatter
from typing import Any

import pytest

from foresail.data.made.shop.catalogue import TASKS
from foresail.data.made.shop.language import LANGUAGES, read_language


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


def test_every_task_has_phrases() -> None:
    phrases = read_language("en").phrases
    for task, forms in TASKS.items():
        for form in forms:
            assert len(phrases[task][form.name]["train"]) >= 2 and phrases[task][form.name]["test"]
            assert form.kind in phrases["instructions"]
