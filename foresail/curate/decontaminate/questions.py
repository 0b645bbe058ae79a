"""What is looked for of a benchmark's row: its question, and the choices that it offers.

    questions({"question": "Which is a mammal?", "choices": ["a shark", "a bat"], "answer": 1})
        -> [Question("Which is a mammal?", ("a shark", "a bat"))]

Answers and solutions are not: the same steps of reasoning stand under many questions. `columns` names others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from foresail.data.problems.problems import PROMPT_KEYS
from foresail.recipe.tables.inputs import reach

OTHER_KEYS = (
    "premise",
    "sentence",
    "goal",
    "ctx",
    "messages",
    "conversations",
    "content",
    "turns",
    "prompts",
)
QUESTION_KEYS = (*PROMPT_KEYS, *OTHER_KEYS)
CHOICE_KEYS = re.compile(
    "choices?|options?|alternatives|endings|(choice|option|ending|sol|answer)[_ ]?[0-9]|(choice|option)[_ ]?[a-j]"
    "|[a-e]",
    re.IGNORECASE,
)
WORDS = re.compile(
    r"[^\W\d_]{2,}[\W\d_].*?[^\W\d_]{2,}|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u9fff]{4}", re.DOTALL
)
NOT_TEXT = ("role", "from", "type", "label")  # of messages and choices


class Question(NamedTuple):
    text: str
    choices: tuple[str, ...] = ()

    @property
    def texts(self) -> tuple[str, ...]:
        """Alone, and with its choices behind it."""
        return (self.text, "\n".join((self.text, *self.choices))) if self.choices else (self.text,)


def questions(columns: Mapping[str, Any]) -> list[Question]:
    """Of the first column named prompt, problem, question, … with two words; "effect" is no question."""
    named = {str(name).lower(): value for name, value in columns.items()}
    names = [name for name in QUESTION_KEYS if strings_in(named.get(name))]
    name = next((name for name in names if has_words(strings_in(named[name]))), names[0] if names else "1")
    value = named.get(name)
    inner = [question for row in rows_in(value) for question in questions(row)]
    if inner:
        return inner
    text = "\n".join(strings_in(value))
    choices = [
        choice
        for own, value in named.items()
        if own not in QUESTION_KEYS and CHOICE_KEYS.fullmatch(own)
        for choice in strings_in(value)
    ]
    return [Question(text, tuple(choices))] if text else []


def rows_in(value: Any) -> Iterator[Mapping[str, Any]]:
    """Rows inside a column, which have a question of their own; messages have a role."""
    for row in value if isinstance(value, list | tuple) else [value]:
        if isinstance(row, Mapping) and not {"role", "from"} & {*row} and {*row} & {*QUESTION_KEYS}:
            yield row


def named_texts(columns: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Of each column that is there and has text."""
    return [text for name in names if (text := "\n".join(strings_in(reach(columns, name, None))))]


def strings_in(value: Any) -> list[str]:
    """All texts in a value, but for roles and kinds of messages and the letters of choices."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, Mapping):
        return [text for name, item in value.items() if name not in NOT_TEXT for text in strings_in(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in strings_in(item)]
    return []


def has_words(texts: Iterable[str]) -> bool:
    """has_words(["effect"]) -> False; has_words(["It rained."]) -> True."""
    return any(WORDS.search(text) for text in texts)
