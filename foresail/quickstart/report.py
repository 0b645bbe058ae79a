"""What the quickstart says at its end: before and after, two solutions, the picture, and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from foresail.runlog.canvas import save_figure
from foresail.runlog.directory import RunDirectory
from foresail.runlog.plots import plot_curves


def report(folder: Path, summary: Mapping[str, Any], console: Console, program: str) -> None:
    """`program` is how to call Foresail from here: the commands are to be copied as they are."""
    console.print()
    console.print(accuracy_table(summary))
    for sample in summary["samples"]:
        console.print(Text(f"\n{sample['problem']}   (right answer: {sample['answer']})", style="bold"))
        console.print(Text(f"  before  {sample['before']}"))
        console.print(Text(f"  after   {sample['after']}"))
    seconds = summary["seconds"]
    spent = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items() if value >= 1)
    console.print(Text(f"\ntime: {spent}"))
    console.print(Text(save_curves(folder)))
    console.print(Text(f"summary: {folder / 'summary.json'}\n\nTo go on:"))
    for command in next_commands(folder, summary):
        console.print(Text(f"  {program} {command}"), soft_wrap=True)


def report_agent(folder: Path, summary: Mapping[str, Any], console: Console, program: str) -> None:
    """Held-out accuracy and an episode before and after."""
    console.print(
        Text(f"\nheld-out questions answered right: {summary['before']:.1%} → {summary['after']:.1%}")
    )
    for when, lines in summary["episodes"].items():
        console.print(Text(f"\nan episode {when}", style="bold"))
        for line in lines:
            console.print(Text(line), soft_wrap=True)
    spent = ", ".join(f"{name} {value:.0f} s" for name, value in summary["seconds"].items() if value >= 1)
    console.print(Text(f"\ntime: {spent}"))
    console.print(Text(save_curves(folder, "Reinforcement discovers that searching on pays")))
    console.print(Text(f"summary: {folder / 'summary.json'}\n\nTo go on:"))
    for command in (
        f"show {quote(folder / 'rl')} --samples",
        f"eval {quote(folder / 'rl')} --samples 4",
        f"rl {quote(folder / 'rl' / 'recipe.toml')} run.name=pbsd credit.kind=pbsd credit.hint=' {{answer}}?'",
    ):
        console.print(Text(f"  {program} {command}"), soft_wrap=True)


def accuracy_table(summary: Mapping[str, Any]) -> Table:
    table = Table(title="held-out problems", box=None)
    for column in ("", "before", "after"):
        table.add_column(column, justify="left" if not column else "right")
    for name, before in summary["before"].items():
        after = summary["after"][name]
        show = "{:.1f} tokens" if name == "response_length" else "{:.1%}"
        table.add_row(name.replace("_", " "), show.format(before), show.format(after))
    return table


def save_curves(folder: Path, title: str = "Reinforcement discovers that thinking pays") -> str:
    """curves.png of the reinforcement; without matplotlib the run is still a success."""
    try:
        metrics = RunDirectory(folder / "rl").read_metrics()
        figure = plot_curves(metrics, title)
        save_figure(figure, folder / "curves.png")
    except ImportError as error:
        return f"no curves drawn: {error}"
    return f"curves: {folder / 'curves.png'}"


def next_commands(folder: Path, summary: Mapping[str, Any]) -> Iterator[str]:
    """Commands that work as they are: look closer, and see what another loss makes of the same start."""
    checkpoint, test = summary["checkpoints"]["rl"], folder / "data" / "test.jsonl"
    yield f"show {quote(folder)}"
    yield f"eval {quote(checkpoint)} --data {quote(test)} --max-new-tokens 40"
    yield f"rl {quote(folder / 'rl' / 'recipe.toml')} run.name=rl-cispo loss.kind=cispo"


def quote(path: Path | str) -> str:
    return shlex.quote(str(path))
