"""Answers in tags: `<answer>7</answer>`."""

from __future__ import annotations

import re
from typing import NamedTuple

TAG = re.compile(r"</?answer>", re.IGNORECASE)


class Tagged(NamedTuple):
    """Where an opening tag starts, what stands inside begins and ends, and the closing tag ends."""

    start: int
    begin: int
    end: int
    after: int


def tagged_answers(text: str) -> list[Tagged]:
    """tagged_answers("<answer>7</answer>") -> [(0, 8, 9, 18)]. What is opened again inside is still one answer.

    One pass over all tags: looking for each one's end would take the square of their number.
    """
    answers: list[Tagged] = []
    opening: re.Match[str] | None = None
    for tag in TAG.finditer(text):
        if tag[0][1] != "/":
            opening = opening or tag
        elif opening:
            answers.append(Tagged(opening.start(), opening.end(), tag.start(), tag.end()))
            opening = None
    return answers
