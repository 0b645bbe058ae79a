"""Results of the long-context tasks with their intervals: files, and tables for the terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from foresail.evaluation.long_context import Cell, LongAnswer, by_cell
from foresail.evaluation.results import figure
from foresail.runlog.atomic import write_text
from foresail.runlog.heat_map import blend

RECORDS, SUMMARY, PICTURE = "records.jsonl", "summary.json", "heat-map.png"


def summarise(answers: Sequence[LongAnswer]) -> dict[str, Any]:
    """{"tasks": {"niah_single": {"all": figure, "1024": figure, …}}, "cells": [{"task": …, "depth": 0.5, …figure}]}

    where a figure is {"value": 0.97, "low": 0.9, "high": 0.99, "problems": 100}.
    """
    tasks: dict[str, dict[str, Any]] = {}
    for task in dict.fromkeys(answer.task for answer in answers):
        of_task = [answer for answer in answers if answer.task == task]
        lengths = dict.fromkeys(answer.length for answer in of_task)
        tasks[task] = {"all": figure(scores(of_task))} | {
            str(length): figure(scores(answer for answer in of_task if answer.length == length))
            for length in lengths
        }
    cells = [
        {"task": task, "length": length, "depth": depth, **figure(values)}
        for (task, length, depth), values in by_cell(answers).items()
    ]
    return {"tasks": tasks, "cells": cells}


def scores(answers: Iterable[LongAnswer]) -> list[float]:
    return [answer.score for answer in answers]


def write_results(folder: Path, answers: Sequence[LongAnswer], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Every answer, and the figures; gives those."""
    lines = (json.dumps(vars(answer), ensure_ascii=False) + "\n" for answer in answers)
    write_text(folder / RECORDS, "".join(lines))
    summary = {**settings, **summarise(answers)}
    write_text(folder / SUMMARY, json.dumps(summary, indent=1, ensure_ascii=False) + "\n")
    return summary


def show_answers(answers: Sequence[LongAnswer]) -> RenderableType:
    """For the terminal: of each task a table of recall in per cent, depths down and lengths across."""
    summary, cells = summarise(answers), by_cell(answers)
    pictures: list[RenderableType] = []
    for task, figures in summary["tasks"].items():
        every = figures["all"]
        interval = f"95 % interval {every['low']:.1%} to {every['high']:.1%}"
        pictures += [f"{task}: {every['value']:.1%}, {interval}", recall_table(task, cells)]
    return Group(*pictures)


def recall_table(task: str, cells: Mapping[Cell, Sequence[float]]) -> Table:
    lengths = dict.fromkeys(length for name, length, _ in cells if name == task)
    table = Table(box=None, padding=(0, 0))
    for column in ("depth ", *(f" {length} " for length in lengths)):
        table.add_column(column, justify="right")
    for depth in dict.fromkeys(depth for name, _, depth in cells if name == task):
        shares = [fmean(cells[task, length, depth]) for length in lengths]
        squares = [Text(f"{100 * share:3.0f} ", style=f"black on {blend(share)}") for share in shares]
        table.add_row("all  " if depth is None else f"{depth:.0%}  ", *squares)
    return table
