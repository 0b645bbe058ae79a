"""The strict reading of a judge's answer: one JSON object with the expected names, perhaps after thinking.

    read_object('<think>…</think>{"fluency": 4}', ["fluency"]) -> {"fluency": 4}
    read_object('Sure! {"fluency": 4}', ["fluency"])           raises Unreadable("no_json", …)

Nothing is searched for in the answer, so what a judge repeats of a judged text is never taken for its verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

FENCED = re.compile(r"```(?:json)?\s*(\{[^`]*\})\s*```")


class Unreadable(ValueError):
    """Why an answer is not used; `reason` is one word, to be counted."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail or reason)
        self.reason = reason


def read_object(answer: str, names: Sequence[str]) -> dict[str, Any]:
    """The answer must be one object, perhaps after thinking or in a code block, with exactly these names."""
    value = parse_object(after_thinking(answer).strip())
    if sorted(value) != sorted(names):
        raise Unreadable("wrong_names", f"answered {sorted(value)}, asked for {sorted(names)}"[:300])
    return value


def after_thinking(answer: str) -> str:
    _, closed, behind = answer.rpartition("</think>")
    if not closed and "<think>" in answer:
        raise Unreadable("endless_thinking", "the answer ends before its thinking does")
    return behind if closed else answer


def parse_object(text: str) -> dict[str, Any]:
    if match := FENCED.fullmatch(text):
        text = match[1]
    try:
        value = json.loads(text, object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        if isinstance(error, Unreadable):
            raise
        raise Unreadable("no_json", f"{text[:60]!r} is not JSON") from None
    if not isinstance(value, dict):
        raise Unreadable("no_json", f"{text[:60]!r} is no object")
    return value


def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise Unreadable("wrong_names", "a name is there twice")
    return dict(pairs)
