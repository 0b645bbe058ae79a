"""Right answers for `verifier_attack.py`: a seeded sample of the public sets, spread over kinds of answers."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import NamedTuple

from attack_reading import understood
from math_pairs import last_box, read_rows

LONGEST = 120  # characters


class Gold(NamedTuple):
    text: str
    kind: str


SOURCES = (
    ("MATH/train7500", "answer"),
    ("deepmath_5k/train", "answer"),
    ("deepscaler_sub1209/train", "answer"),
    ("math500/test", "answer"),
    ("rllm_train/aime1983_2023", "answer"),
    ("eval_qwen25math/aime24", "answer"),
    ("eval_qwen25math/olympiadbench", "final_answer"),
    ("minerva_math_with_answers/test", "answer"),
    ("gsm8k/train", "answer"),
)
KINDS: dict[str, str] = {
    "integer": r"-?\d+|-?\d{1,3}(,\d{3})+",
    "fraction": r"-?\\[dt]?frac\{-?\d+\}\{\d+\}|-?\d+/\d+",
    "decimal": r"-?\d*\.\d+(\\?%)?|-?\d+\\?%",
    "unit": r".*\\(text|mbox|mathrm)\{.*\}(\^\{?\d\}?)?|.*\\circ\}?|\\\$.*",
    "choice or word": r"\(?[A-Z]\)?|\\text(bf)?\{[^{}\\]*\}|[A-Za-z ]{3,}",
    "matrix": r".*matrix.*",
    "set or interval": r".*(\\cup|\\infty|\\\{|\\in\b).*|[(\[][^,]*,[^,]*\]|\[[^,]*,[^,]*[)\]]",
    "inequality": r".*(<|>|\\le|\\ge|\\ne).*",
    "tuple": r"(\\left)?\(.*,.*\)",
    "list": r"[^(\[]*,.*|.*\\pm.*",
    "equation": r".*=.*",
    "with variables": r".*(?<![\\a-zA-Z])[a-df-hj-zA-Z](?![a-zA-Z]).*",
    "radical or constant": r".*(\\sqrt|\\pi|\\ln|\\log|\\sin|\\cos|\^|e|i).*",
    "other": r".*",
}


def read_golds(data: Path) -> list[str]:
    """Every distinct answer of the sets, short enough to be changed and shown."""
    answers: list[str] = []
    for name, field in SOURCES:
        path = data / f"math/{name}.jsonl.gz"
        for row in read_rows(path) if path.exists() else []:
            answers.append(_answer(row[field]))
    return [answer for answer in dict.fromkeys(answers) if answer and len(answer) <= LONGEST]


def _answer(value: str | list[str]) -> str:
    r"""`… #### 72` -> 72; `\boxed{7}` -> 7; lists give their first item."""
    text = str(value[0] if isinstance(value, list) else value)
    if "####" in text:
        return text.rpartition("####")[2].strip()
    if text.startswith("['"):
        text = text[2:-2].replace("\\n", "")
    text = last_box(text) if "boxed" in text else text
    return text.strip().strip("$").strip()


def kind_of(text: str) -> str:
    """kind_of(r"\\frac{1}{2}") -> "fraction"."""
    return next(kind for kind, pattern in KINDS.items() if re.fullmatch(pattern, text, re.DOTALL))


def sample_golds(answers: list[str], count: int, rng: random.Random) -> list[Gold]:
    """As many of each kind as there are, until the count is reached; what the oracle can read comes first."""
    by_kind: dict[str, list[str]] = {kind: [] for kind in KINDS}
    for answer in rng.sample(answers, len(answers)):
        by_kind[kind_of(answer)].append(answer)
    for kind in by_kind:
        by_kind[kind].sort(key=lambda answer: understood(answer) is None)
    golds: list[Gold] = []
    while len(golds) < count and any(by_kind.values()):
        golds += [Gold(texts.pop(0), kind) for kind, texts in by_kind.items() if texts]
    return golds[:count]
