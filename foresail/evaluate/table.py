"""The figures of an evaluation as a table for the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from foresail.evaluate.results import ProblemResult, summarise


def figures_table(results: Sequence[ProblemResult]) -> Table:
    figures = summarise(results)
    table = Table(title=f"{figures['problems']} problems", box=None)
    for column in ("", "accuracy", "95 % interval", "problems"):
        table.add_column(column, justify="left" if not column else "right")
    for name, figure in figures.items():
        if isinstance(figure, dict) and "value" in figure:
            low, high = figure["low"], figure["high"]
            table.add_row(name, f"{figure['value']:.1%}", f"{low:.1%} to {high:.1%}", str(figure["problems"]))
    for name in ("greedy_attempts", "samples"):
        if figures[name]["failures"]:
            table.add_row(f"failures in {name}", str(figures[name]["failures"]), "not counted above", "")
    return table
