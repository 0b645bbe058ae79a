"""What a long-context task gives: a prompt of an exact length, and the strings that a right answer holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Item:
    """`ids` is the prompt as tokens, as many as were asked for; `solution` is how it goes on when all is right.

    `depth` is where a needle that is asked for stands, from 0 (first) to 1 (last); None: what the task asks for is
    all over the text.
    """

    task: str
    prompt: str
    ids: tuple[int, ...]
    answers: tuple[str, ...]
    solution: str
    depth: float | None


def recall(output: str, answers: Sequence[str]) -> float:
    """The share of the answers that the output holds: recall("4 and 9", ["4", "7"]) -> 0.5. Case does not count."""
    said = output.lower()
    return sum(answer.lower() in said for answer in answers) / len(answers)


def join(answers: Sequence[str]) -> str:
    """As solutions list them: join(["4", "7"]) -> " 4, 7."."""
    return f" {', '.join(answers)}."
