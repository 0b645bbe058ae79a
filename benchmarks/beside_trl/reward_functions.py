"""Rewards of `vs_trl.py`, in TRL's shape: both sides call these very functions, so they import neither side."""

from __future__ import annotations

import re
from typing import Any

NUMBER = re.compile(r"-?\d+")
BOXED = re.compile(r"\\boxed\{([^{}]*)\}")


def parity(completions: list[Any], completion_ids: list[list[int]], **_: Any) -> list[float]:
    """Whether the ids add up to an odd number: half of all samples are right, whatever the model."""
    return [float(sum(ids) % 2) for ids in completion_ids]


def boxed(completions: list[Any], answer: list[str], **_: Any) -> list[float]:
    r"""Whether the last box holds the answer: r"<think>…</think>\boxed{4}" and "4" -> 1."""
    answers = [BOXED.findall(text_of(completion)) for completion in completions]
    return [float(bool(boxes) and boxes[-1] == gold) for boxes, gold in zip(answers, answer, strict=True)]


def last_number(completions: list[Any], answer: list[str], **_: Any) -> list[float]:
    """Whether the last number is the answer: "2 * 14 = 28. The answer is 28." and "28" -> 1."""
    stated = [NUMBER.findall(text_of(completion)) for completion in completions]
    return [
        float(bool(numbers) and numbers[-1] == gold) for numbers, gold in zip(stated, answer, strict=True)
    ]


def text_of(completion: Any) -> str:
    """The text, or that of the one message which TRL makes of it where prompts are messages."""
    return completion if isinstance(completion, str) else completion[-1]["content"]
