"""Compares runs: differing recipe keys, and metrics. `foresail runs A B --metric reward`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from foresail.runlog.canvas import CORAL, GOLD, NAVY, PLUM, TEAL, new_figure, quiet, save_figure
from foresail.runlog.directory import RunDirectory
from foresail.runlog.key_metrics import KEY_METRICS, is_held_out
from foresail.runlog.plots import points
from foresail.runlog.run_list import read_recipe

PLACES = ("run.root", "run.name")  # differ in every run
COLOURS = (NAVY, CORAL, TEAL, GOLD, PLUM)
FALLING = ("loss", "kl", "diff")  # a metric with one of these in its name is better when lower
Records = Sequence[dict[str, Any]]


def recipe_table(runs: Sequence[Path]) -> Table:
    """One row for each key in which the runs differ."""
    recipes = [dict(flat(read_recipe(run))) for run in runs]
    keys = dict.fromkeys(key for recipe in recipes for key in recipe if key not in PLACES)
    differing = [key for key in keys if len({repr(recipe.get(key)) for recipe in recipes}) > 1]
    table = comparison_table("recipe", runs)
    for key in differing:
        table.add_row(Text(key), *(Text(str(recipe.get(key, "none"))) for recipe in recipes))
    if not differing:
        table.add_row(Text("no key differs"), *("" for _ in runs))
    return table


def flat(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def metric_table(runs: Sequence[Path], names: Sequence[str]) -> Table:
    """The last value of every metric, and the best with its step."""
    records = [RunDirectory(run).read_metrics() for run in runs]
    table = comparison_table("metric: last, best (step)", runs)
    table.add_row(Text("steps"), *(Text(str(rows[-1]["step"] if rows else 0)) for rows in records))
    for name in choose_metrics(records, names):
        table.add_row(Text(name), *(Text(sum_up(rows, name)) for rows in records))
    return table


def choose_metrics(records: Sequence[Records], names: Sequence[str]) -> list[str]:
    """The metrics whose names end with those asked for; else held-out accuracies and the key metrics."""
    logged = list(dict.fromkeys(name for rows in records for row in rows for name in row if name != "step"))
    if names:
        matching = {
            name: [one for one in logged if one == name or one.endswith(f"/{name}")] for name in names
        }
        if missing := [name for name, matches in matching.items() if not matches]:
            raise ValueError(
                f"no run logged {', '.join(missing)}; logged names: {', '.join(sorted(logged)[:12])}, …"
            )
        return list(dict.fromkeys(one for matches in matching.values() for one in matches))
    keys = [name for metric in KEY_METRICS for name in metric.names if metric.label not in ("lr", "tokens/s")]
    return [name for name in logged if is_held_out(name)] + [name for name in keys if name in logged]


def sum_up(rows: Records, name: str) -> str:
    """Last and best value: sum_up(…) -> "0.41, 0.43 (30)"; "-" if it was never logged."""
    steps, values = points(rows, name)
    if not values:
        return "-"
    best = (min if any(word in name for word in FALLING) else max)(values)
    return f"{values[-1]:.4g}, {best:.4g} ({steps[values.index(best)]})"


def comparison_table(title: str, runs: Sequence[Path]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(title)
    for name in short_names(runs):
        table.add_column(name, overflow="fold")
    return table


def short_names(runs: Sequence[Path]) -> list[str]:
    """The folders' names if these differ, else their paths."""
    names = [run.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


def draw_comparison(runs: Sequence[Path], names: Sequence[str], path: Path) -> None:
    """One panel per metric, one line per run."""
    records = [RunDirectory(run).read_metrics() for run in runs]
    chosen = choose_metrics(records, names)[:6]
    if not chosen:
        raise ValueError("these runs have logged nothing yet, so there is nothing to draw")
    with new_figure((8, 2.6 * len(chosen))) as figure:
        for place, name in enumerate(chosen, start=1):
            axes = figure.add_subplot(len(chosen), 1, place)
            quiet(axes, title=name)
            for number, (label, rows) in enumerate(zip(short_names(runs), records, strict=True)):
                steps, values = points(rows, name)
                axes.plot(steps, values, color=COLOURS[number % len(COLOURS)], label=label, linewidth=1.6)
            if place == 1:
                axes.legend(frameon=False)
    save_figure(figure, path)
