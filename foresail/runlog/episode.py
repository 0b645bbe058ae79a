"""Prints one episode turn by turn, with the credit of each turn.

foresail show RUN --episode multi-hop-17.3

multi-hop-17.3, step 12: right, reward 1, answer Pia Lund Holm
  problem  Ana Adler Arden's first lender's old cousin?
turn 1  evidence +3.1  snr 2.4  weight 1.62
  model    <search>Ana Adler Arden first lender</search>
  world    rumour Vic Lund Garda …
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from foresail.runlog.directory import RunDirectory
from foresail.runlog.samples import shorten
from foresail.runlog.summary import find_run

Row = Mapping[str, Any]
LONGEST = 1000  # characters of a turn


def show_episode(path: Path, name: str, step: int | None = None, console: Console | None = None) -> None:
    """Print an episode of a step, by default of the last step that has it."""
    run, console = find_run(path), console or Console()
    found_step, row = find_episode(run, name, step)
    for line in episode_lines(row, f"{name}, step {found_step}"):
        console.print(Text(line), soft_wrap=True)


def find_episode(run: RunDirectory, name: str, step: int | None) -> tuple[int, Row]:
    """Find "PROBLEM.SAMPLE", or a problem's first sample, in the newest step that has it."""
    steps = run.rollout_steps()
    if not steps:
        raise ValueError(f"{run.path} has no rollouts; give the folder of an RL run")
    for number in reversed(steps) if step is None else [step]:
        rows = run.read_rollouts(number)
        for row in rows:
            if name in (f"{row['problem']}.{row['sample']}", row["problem"]):
                return number, row
    there = ", ".join(f"{row['problem']}.{row['sample']}" for row in run.read_rollouts(steps[-1])[:5])
    where = "in any step" if step is None else f"in step {step}"
    raise ValueError(f"there is no episode {name} {where}; step {steps[-1]} has {there}, …")


def episode_lines(row: Row, title: str) -> Iterator[str]:
    kind = {"correct": "right"}.get(row["status"], row["status"])
    reward = "none" if row["reward"] is None else f"{row['reward']:.3g}"
    yield f"{title}: {kind}, reward {reward}, answer {shorten(row['answer'], LONGEST)}"
    yield f"  problem  {shorten(row['prompt'], LONGEST)}"
    turns = row.get("turns") or [{"observation": "", "response": row["response"]}]
    yield from turn_lines(turns, row.get("credit"))
    if row["response"] != turns[-1]["response"]:
        yield f"  outcome  {shorten(row['response'], LONGEST)}"
    for branch in row.get("branches", ()):
        yield "another record of the same episode"
        yield from turn_lines(branch["turns"], None)


def turn_lines(turns: Sequence[Row], credit: Mapping[str, list[Any]] | None) -> Iterator[str]:
    for number, turn in enumerate(turns):
        if number:
            yield f"  world    {shorten(turn['observation'], LONGEST)}"
        yield f"turn {number + 1}{describe_credit(credit, number)}"
        yield f"  model    {shorten(turn['response'], LONGEST)}"


def describe_credit(credit: Mapping[str, list[Any]] | None, turn: int) -> str:
    """ "  evidence +3.1  snr 2.4  weight 1.62"; for unused evidence the reason."""
    if credit is None or turn >= len(credit["weight"]):
        return ""
    evidence, snr = credit["evidence"][turn], credit["snr"][turn]
    known = "evidence unknown" if evidence is None else f"evidence {evidence:+.2f}  snr {snr:.2f}"
    unused = "" if credit["used"][turn] else "  (not used: unknown, too noisy or too few tokens)"
    return f"  {known}  weight {credit['weight'][turn]:.2f}{unused}"
