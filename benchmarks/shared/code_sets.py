"""Code problems with a right program each, from public data beside the repository.

HumanEval, MBPP, their Plus versions and LeetCode bring solutions. The CodeContests file brings none, so a few of
its problems were solved by hand: `tests/judge/contest_solutions/`, named by the row they solve.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foresail.judge.programs.program import Program
from foresail.judge.programs.rows import read_task
from foresail.judge.programs.task import CodeTask

ROOT = Path(__file__).parents[2]
DATA = ROOT / "../shared/data/code"
CONTESTS = "rllm_deepcoder/test_code_contests"
SOLUTIONS = ROOT / "tests/judge/contest_solutions"


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A problem, and a program that should pass its tests; `body` is that program without the prelude.

    `entry` is the function under test, "Solution().twoSum", or None where the program is run as a whole.
    """

    name: str
    task: CodeTask
    body: str
    language: str = "python"
    entry: str | None = None

    def program(self, body: str | None = None) -> Program:
        """The gold program, or another body in its place."""
        source = self.body if body is None else body
        if self.language == "cpp":
            return Program(source=source, language="cpp")
        return Program(source=f"{self.task.prelude}\n\n{source}")


def read_rows(name: str) -> list[dict[str, Any]]:
    path = DATA / f"{name}.jsonl.gz"
    if not path.is_file():
        raise SystemExit(f"{path} is not there; this benchmark needs the public data beside the repository")
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def load(name: str) -> list[Solved]:
    """All problems of a set, in the order of its file."""
    if name == "contests":
        return list(load_contests())
    path, body = FILES[name]
    return [
        Solved(
            name=f"{name} {row['task_id']}", task=read_task(row), body=body(row), entry=row.get("entry_point")
        )
        for row in read_rows(path)
    ]


def load_contests() -> Iterator[Solved]:
    rows = read_rows(CONTESTS)
    for path in sorted(SOLUTIONS.iterdir()):
        if path.suffix in (".py", ".cpp"):
            task = read_task(rows[int(path.name[:3])])
            language = "cpp" if path.suffix == ".cpp" else "python"
            yield Solved(name=f"contests {path.name}", task=task, body=path.read_text(), language=language)


def sample(problems: list[Solved], count: int, seed: int = 0) -> list[Solved]:
    """So many of them, always the same ones."""
    return problems if count >= len(problems) else random.Random(seed).sample(problems, count)


def complete_prompt(row: dict[str, Any]) -> str:
    return row["prompt"] + row["canonical_solution"]


FILES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "humaneval": ("humaneval/HumanEval", complete_prompt),
    "humaneval+": ("humanevalplus/HumanEvalPlus", complete_prompt),
    "mbpp": ("mbpp/mbpp", lambda row: row["code"]),
    "mbpp+": ("mbppplus/MbppPlus", complete_prompt),
    "leetcode": ("leetcodedataset/v0.2.0-train", lambda row: row["completion"]),
}
