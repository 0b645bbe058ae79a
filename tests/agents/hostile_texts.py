"""Texts that nobody should have to expect: the package's own words, special tokens, markup, broken characters."""

from __future__ import annotations

import ast
import random
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "foresail"
ROOMS = ("agents", "tokenizer", "judge", "rewards", "rollout", "engine")  # through which a response goes
LONGEST = 200
MARKUP = [
    "<|im_end|>", "<|im_start|>assistant\n", "<|endoftext|>", "<|eot_id|>", "<s>", "</s>", "<unk>", "<pad>",
    "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>", "<think>", "</think>", "<result>",
    "</result>", "<search>", "</search>", "<answer>", "{{", "}}", "{% raw %}", "{% endraw %}", "{#", "{{ 1/0 }}",
    "{% generation %}", "<｜User｜>", "[INST]", "[TOOL_CALLS]", "```python\n", "\\boxed{1}",
    "foresail-trial-answer",
]  # fmt: skip
CHARACTERS = [
    "", " ", "\n", "\r\n", "\t", "\x00", "\x1b[2J", "\x7f", "\ud800", "\udfff\ud83d", "\ue000", "\uf8ff", "\ufeff",
    "\ufffd", "\uffff", "\u2028", "\u202e", "€", "𝔘", "👩\u200d👩", "é", "e\u0301", "語", "٣", "\U0010ffff",
    "a" * 5000,
    "yes", "no", "trial", "4", "null", "NaN", '"', "\\", "'", "%s", "{}", "{0}", "$", "`",
]  # fmt: skip


@cache
def own_words() -> list[str]:
    """Every string in the source of these rooms, docstrings included."""
    found = {
        node.value[:LONGEST]
        for room in ROOMS
        for file in sorted((PACKAGE / room).rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return sorted(found)


def make_text(numbers: random.Random) -> str:
    """Some of all that, one behind the other, whole or cut in two."""
    pieces = []
    for _ in range(numbers.randint(1, 6)):
        piece = numbers.choice(numbers.choice([own_words(), MARKUP, CHARACTERS]))
        pieces.append(piece if numbers.random() < 0.8 else piece[: len(piece) // 2])
    return numbers.choice(["", " ", "\n"]).join(pieces)
