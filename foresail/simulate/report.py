"""What a simulation found, as numbers and as a picture of who had how many rows when."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from foresail.runlog.canvas import INK, new_figure, save_figure
from foresail.simulate.settings import Simulation
from foresail.simulate.step import StepResult

COLUMNS = 1000  # of the picture
SUMMED = (
    "launched_groups chosen cancelled_groups tokens decisions migrations preemptions computed_again".split()
)
SHOWN = 32  # instances that get a name at the axis


def summarize(simulation: Simulation, results: Sequence[StepResult]) -> dict[str, Any]:
    """Sums and means over all steps, with the assumptions they follow from."""
    seconds = sum(result.seconds for result in results)
    generating = sum(result.generating_seconds for result in results)
    return {
        "name": simulation.name,
        "steps": len(results),
        "seconds": seconds,
        "tokens_per_second": sum(result.tokens for result in results) / generating,
        "tail_seconds": sum(result.tail_seconds for result in results),
        "idle_ratio": sum(result.idle_ratio * result.seconds for result in results) / seconds,
        "waste_ratio": sum(result.waste_ratio for result in results) / len(results),
        **{name: sum(getattr(result, name) for result in results) for name in SUMMED},
        "assumptions": simulation.model_dump(),
    }


def describe(summary: dict[str, Any]) -> list[str]:
    """The summary as lines."""
    written = {
        "time": f"{summary['seconds']:,.0f} s in {summary['steps']} step(s)",
        "throughput": f"{summary['tokens_per_second']:,.0f} tokens/s",
        "tail": f"{summary['tail_seconds']:,.0f} s on the last tenth of the requests",
        "idle": f"{summary['idle_ratio']:.1%} of all instances' time",
        "waste": f"{summary['waste_ratio']:.1%} valid groups too many",
        "groups": f"{summary['launched_groups']:,} launched, {summary['cancelled_groups']:,} cancelled",
        "chunks": f"{summary['decisions']:,}, of which {summary['migrations']:,} moved to another instance",
        "put back": f"{summary['preemptions']:,} times, {summary['computed_again']:,} tokens computed again",
    }
    return [f"{name:11} {text}" for name, text in written.items()]


def plot_gantt(results: Sequence[StepResult], path: Path, *, title: str) -> None:
    """A line per instance: white where it has nothing to do, darker the more rows it has."""
    names = [*results[0].history]
    total = sum(result.seconds for result in results)
    rows = rows_over_time(results, names, np.linspace(0, total, COLUMNS + 1))
    with new_figure((10, min(2 + 0.12 * len(names), 8)), title=title) as figure:
        from matplotlib.colors import PowerNorm

        axes = figure.add_subplot()
        image = axes.imshow(
            np.ma.masked_less(rows, 1e-9),  # nothing at all is white, a single row is not
            aspect="auto",
            interpolation="nearest",
            cmap="YlGnBu",
            extent=(0, total, len(names) - 0.5, -0.5),
            norm=PowerNorm(0.5, vmin=0),  # the difference between 1 and 10 rows matters more than 100 and 110
        )
        for moment in np.cumsum([result.seconds for result in results])[:-1]:
            axes.axvline(moment, color=INK, linewidth=0.8)
        if len(names) <= SHOWN:
            axes.set_yticks(range(len(names)), names, fontsize=7)
        axes.set_ylabel("instance")
        axes.set_xlabel("simulated seconds")
        figure.colorbar(image, ax=axes, label="rows running", pad=0.01)
    save_figure(figure, path)


def rows_over_time(results: Sequence[StepResult], names: Sequence[str], edges: np.ndarray) -> np.ndarray:
    """Mean rows of each instance between two edges, one step after another on one axis of time."""
    mean = np.zeros((len(names), len(edges) - 1))
    start = 0.0
    for result in results:
        for place, name in enumerate(names):
            moments, rows = map(np.array, zip(*result.history[name], (result.seconds, 0), strict=True))
            area = np.concatenate([[0.0], np.cumsum(rows[:-1] * np.diff(moments))])
            mean[place] += np.diff(np.interp(edges - start, moments, area)) / np.diff(edges)
        start += result.seconds
    return mean
