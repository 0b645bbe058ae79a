"""Where a row has its prompt and its answer, and the row with another one there.

with_prompt({"problem": "2 + 2?", "answer": "4"}, "3 + 1?") -> {"problem": "3 + 1?", "answer": "4"}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foresail.data.problems.problems import ANSWER_KEYS, PROMPT_KEYS, to_prompt
from foresail.recipe.tables.inputs import reach

ABSENT = object()
TEST_KEYS = ("tests", "test", "test_list", "test_cases", "input_output", "plus_input", "public_tests")
LEVEL_KEYS = ("level", "difficulty", "meta.difficulty")


def key_of(row: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    return next((name for name in names if reach(row, name, ABSENT) is not ABSENT), None)


def prompt_of(row: Mapping[str, Any]) -> str:
    """The last message of the prompt."""
    key = key_of(row, PROMPT_KEYS)
    prompt = reach(row, key, "") if key is not None else ""
    return prompt if isinstance(prompt, str) else to_prompt(prompt, "prompt")[-1].content


def with_prompt(row: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The text in place of the prompt, or of its last message."""
    key = key_of(row, PROMPT_KEYS)
    assert key is not None, "a problem has a prompt"
    prompt = row[key]
    if not isinstance(prompt, str):
        return {**row, key: [*prompt[:-1], {**prompt[-1], "content": text}]}
    return {**row, key: text}


def with_answer(row: Mapping[str, Any], answer: str) -> dict[str, Any]:
    key = key_of(row, ANSWER_KEYS)
    assert key is not None, "a problem has an answer"
    if key in row:
        return {**row, key: answer}
    outer, _, inner = key.partition(".")
    return {**row, outer: {**row[outer], inner: answer}}


def has_tests(row: Mapping[str, Any]) -> bool:
    """Whether a column of the row holds tests of programs."""
    if any(row.get(key) for key in TEST_KEYS):
        return True
    style = reach(row, "reward_model.style")
    return isinstance(style, str) and style in ("code", "prime_code", "sandbox")
