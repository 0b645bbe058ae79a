"""An item of a long-context task: a prompt of an exact length, and the strings that a right answer holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Item:
    """`ids` is the prompt as tokens, of the requested number; `solution` is the right continuation.

    `depth` is the place of a requested needle, from 0 (first) to 1 (last); None: the answers are all over the text.
    """

    task: str
    prompt: str
    ids: tuple[int, ...]
    answers: tuple[str, ...]
    solution: str
    depth: float | None


def recall(output: str, answers: Sequence[str]) -> float:
    """The share of the answers that the output holds: recall("4 and 9", ["4", "7"]) -> 0.5. Case does not count."""
    lowered = output.lower()
    return sum(answer.lower() in lowered for answer in answers) / len(answers)


def join(answers: Sequence[str]) -> str:
    """As solutions list them: join(["4", "7"]) -> " 4, 7."."""
    return f" {', '.join(answers)}."
