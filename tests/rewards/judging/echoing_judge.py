"""A judge that says what a test scripts, from the question it is asked; it stands in for a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from foresail.chat.endpoint import Note, Refused, no_note
from foresail.records import Message

NAME = re.compile(r'"((?:better|\w+)_[0-9a-f]{6})": ')


def scripted(say: Callable[[str], str | Refused]) -> Any:
    """An `Answer` that says `say(question)`; it counts its questions in `.asked`."""

    def answer(
        conversations: Sequence[Sequence[Message]],
        keys: Sequence[str],
        *,
        schemas: Sequence[Mapping[str, Any]] | None = None,
        choices: Sequence[str] | None = None,
        note: Note = no_note,
    ) -> list[str | Refused]:
        answer.asked += len(keys)  # type: ignore[attr-defined]
        return [say(conversation[-1].content) for conversation in conversations]

    answer.asked = 0  # type: ignore[attr-defined]
    return answer


def name_in(question: str) -> str:
    """The name that the answer's object must have: "better_5f0c31"."""
    return NAME.findall(question.rpartition("Answer with one JSON object")[2])[0]


def framed(question: str, name: str) -> str:
    """The text in a frame: framed(question, "answer A")."""
    match = re.search(rf"<<{name} (\w+)>>\n(.*?)\n<</{name} \1>>", question, re.DOTALL)
    assert match is not None, (name, question)
    return match[2]
