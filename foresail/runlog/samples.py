"""Prints two responses of a step, one right and one wrong.

`foresail show RUN --samples` prints them:

    for line in sample_lines(run.read_rollouts(12)):
        print(line)

    right, 23 tokens, reward 1
      problem   7 - 2 * 3 =
      response  <think>2*3=6, 7-6=1</think>\\boxed{1}
    wrong, 9 tokens, reward 0, answer 1
      …

Both are of the same problem if there is one with both kinds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from foresail.runlog.summary import find_run

Row = Mapping[str, Any]

LONGEST_PROBLEM, LONGEST_RESPONSE = 200, 480  # characters: a few lines of a terminal


def show_samples(path: Path, step: int | None = None, console: Console | None = None) -> None:
    """Print a right and a wrong response of one step, by default the last with rollouts."""
    run, console = find_run(path), console or Console()
    steps = run.rollout_steps()
    if not steps:
        raise ValueError(f"{run.path} has no rollouts; give the folder of an RL run")
    chosen = steps[-1] if step is None else step
    lines = sample_lines(run.read_rollouts(chosen)) or ["no verdict came about"]
    console.print(Text(f"{run.path}, step {chosen}", style="bold"))
    for line in lines:
        console.print(Text(line))


def sample_lines(rows: Sequence[Row]) -> list[str]:
    """The lines of a right and a wrong response; none without verdicts."""
    return [line for row in pick_pair(rows) for line in describe(row)]


def pick_pair(rows: Sequence[Row]) -> list[Row]:
    """A right and a wrong response of the first problem that has both, else the best and the worst of all."""
    judged = [row for row in rows if row["reward"] is not None]
    first_right: dict[str, Row] = {}
    first_wrong: dict[str, Row] = {}
    for row in judged:
        (first_right if is_right(row) else first_wrong).setdefault(row["problem"], row)
    for problem in first_right:
        if problem in first_wrong:
            return [first_right[problem], first_wrong[problem]]
    if not judged:
        return []
    best, worst = max(judged, key=rank), min(judged, key=rank)
    return [best] if rank(best) == rank(worst) else [best, worst]


def is_right(row: Row) -> bool:
    return bool(row["status"] == "correct")


def rank(row: Row) -> tuple[bool, float]:
    return is_right(row), row["reward"]


def describe(row: Row) -> Iterator[str]:
    tokens = sum(row["loss_mask"])
    verdict = "right" if is_right(row) else row["status"]
    cut = ", cut at the limit" if row["finish"] == "length" else ""
    expected = "" if is_right(row) or not row["answer"] else f", answer {shorten(row['answer'], 40)}"
    yield f"{verdict}, {tokens} token{'s' * (tokens != 1)}{cut}, reward {row['reward']:g}{expected}"
    yield f"  problem   {shorten(row['prompt'], LONGEST_PROBLEM)}"
    yield f"  response  {shorten(row['response'], LONGEST_RESPONSE)}"


def shorten(text: str, longest: int) -> str:
    """shorten("let me  think\\nabout it again", 16) -> "let m … ut it again"; the end of a response matters most.

    In one line, without control characters, which could clear the screen.
    """
    line = "".join(letter if letter.isprintable() else "�" for letter in " ".join(text.split()))
    if len(line) <= longest:
        return line
    head = longest // 3
    return f"{line[:head].rstrip()} … {line[head - longest :].lstrip()}"
