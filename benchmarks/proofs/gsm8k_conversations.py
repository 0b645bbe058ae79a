"""GSM8K's solutions as conversations to imitate: the calculator's marks go, the last line stays.

    "She makes 9 * 2 = $<<9*2=18>>18 every day.\\n#### 18"  ->  "She makes 9 * 2 = $18 every day.\\n#### 18"

The grader reads what stands after `####`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from foresail.data.rows import read_rows
from foresail.runlog.atomic import write_text

_CALCULATOR = re.compile(r"<<[^<>]*>>")


def write_conversations(source: Path, target: Path) -> None:
    """A file that `foresail sft` takes, from GSM8K's own (JSONL with question and answer, gzip too)."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in to_conversations(source)]
    target.parent.mkdir(parents=True, exist_ok=True)
    write_text(target, "".join(lines))


def to_conversations(source: Path) -> Iterator[dict[str, str]]:
    for row in read_rows(source):
        question, answer = row.columns.get("question"), row.columns.get("answer")
        if not isinstance(question, str) or not isinstance(answer, str) or "\n#### " not in answer:
            raise ValueError(
                f"{row.place} is no row of GSM8K; it needs a question, and an answer that ends with a line #### N"
            )
        yield {"prompt": question.strip(), "completion": clean(answer)}


def clean(solution: str) -> str:
    """Without the calculator's marks, and without thousands separators in the last line."""
    words, _, number = _CALCULATOR.sub("", solution).strip().rpartition("\n#### ")
    return f"{words.strip()}\n#### {number.replace(',', '').strip()}"
