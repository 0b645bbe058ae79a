"""The report of a quickstart: accuracy before and after, two solutions, the curves, and the next commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from foresail.runlog.canvas import save_figure
from foresail.runlog.directory import RunDirectory
from foresail.runlog.plots import plot_curves


def report(folder: Path, summary: Mapping[str, Any], console: Console, program: str) -> None:
    """`program` is the command that starts Foresail here, so that printed commands can be copied."""
    console.print()
    console.print(accuracy_table(summary))
    for sample in summary["samples"]:
        console.print(Text(f"\n{sample['problem']}   (right answer: {sample['answer']})", style="bold"))
        console.print(Text(f"  before  {sample['before']}"))
        console.print(Text(f"  after   {sample['after']}"))
    checkpoint, test = summary["checkpoints"]["rl"], folder / "data" / "test.jsonl"
    commands = (
        f"show {quote(folder)}",
        f"eval {quote(checkpoint)} --data {quote(test)} --max-new-tokens 40",
        f"rl {quote(folder / 'rl' / 'recipe.toml')} run.name=rl-cispo loss.kind=cispo",
    )
    title = "Reinforcement discovers that thinking pays"
    print_end(folder, summary, console, title, [f"{program} {command}" for command in commands])


def report_agent(folder: Path, summary: Mapping[str, Any], console: Console, program: str) -> None:
    """Held-out accuracy and an episode before and after."""
    console.print(
        Text(f"\nheld-out questions answered right: {summary['before']:.1%} → {summary['after']:.1%}")
    )
    for when, lines in summary["episodes"].items():
        console.print(Text(f"\nan episode {when}", style="bold"))
        for line in lines:
            console.print(Text(line), soft_wrap=True)
    commands = (
        f"show {quote(folder / 'rl')} --samples",
        f"eval {quote(folder / 'rl')} --samples 4",
        f"rl {quote(folder / 'rl' / 'recipe.toml')} run.name=pbsd credit.kind=pbsd credit.hint=' {{answer}}?'",
    )
    title = "Reinforcement discovers that searching on pays"
    print_end(folder, summary, console, title, [f"{program} {command}" for command in commands])


def accuracy_table(summary: Mapping[str, Any]) -> Table:
    table = Table(title="held-out problems", box=None)
    for column in ("", "before", "after"):
        table.add_column(column, justify="left" if not column else "right")
    for name, before in summary["before"].items():
        after = summary["after"][name]
        show = "{:.1f} tokens" if name == "response_length" else "{:.1%}"
        table.add_row(name.replace("_", " "), show.format(before), show.format(after))
    return table


def print_end(
    folder: Path, summary: Mapping[str, Any], console: Console, title: str, commands: Sequence[str]
) -> None:
    """Times, files and the next commands; `title` is the plot's."""
    spent = ", ".join(f"{name} {value:.0f} s" for name, value in summary["seconds"].items() if value >= 1)
    console.print(Text(f"\ntime: {spent}"))
    console.print(Text(save_curves(folder, title)))
    console.print(Text(f"summary: {folder / 'summary.json'}\n\nTo go on:"))
    for command in commands:
        console.print(Text(f"  {command}"), soft_wrap=True)


def save_curves(folder: Path, title: str) -> str:
    """curves.png of the reinforcement; without matplotlib the run is still a success."""
    try:
        save_figure(plot_curves(RunDirectory(folder / "rl").read_metrics(), title), folder / "curves.png")
    except ImportError as error:
        return f"no curves drawn: {error}"
    return f"curves: {folder / 'curves.png'}"


def quote(path: Path | str) -> str:
    return shlex.quote(str(path))
