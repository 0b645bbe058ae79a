r"""The solution that comes with a problem: a worked one of maths, which ends on the answer, or a program.

find_solution({"answer": "18", "solution": "… $\boxed{18}$"}, "18", None) -> the column `solution`
gold_programs({"code": "def add(a, b): …"}) -> ["def add(a, b): …"]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from foresail.data.problems.problems import to_answer
from foresail.recipe.tables.inputs import reach

SOLUTION_KEYS = ("solution", "solutions")
PROGRAM_KEYS = ("solution", "canonical_solution", "code", "solutions", "completion")
GOES_ON = "canonical_solution"  # HumanEval's goes on where its prompt ends


def find_solution(columns: Mapping[str, Any], answer: Any, key: str | None) -> str | None:
    """The column of that name; without one GSM8K's answer, which is a solution that ends in `#### 18`."""
    value = answer if key is None else reach(columns, key)
    if isinstance(value, list) and value:
        value = value[0]  # of several ways to solve it
    return value if isinstance(value, str) and value.strip() != to_answer(answer) else None


def gold_programs(columns: Mapping[str, Any], prompt: str = "") -> list[str]:
    """Sources, in every form worth a try: alone, and behind the prompt."""
    programs = []
    for key in PROGRAM_KEYS:
        value = reach(columns, key)
        texts = value if isinstance(value, list) else [value]
        for text in texts[:1]:
            if isinstance(text, str) and text.strip():
                programs.append(text)
                if key == GOES_ON and prompt:
                    programs.append(f"{prompt}{text}")
    return programs
