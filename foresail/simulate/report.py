"""Reports a simulation's results as numbers and as a plot of each instance's rows over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foresail.runlog.canvas import CORAL, INK, NAVY, new_figure, quiet, save_figure
from foresail.simulate.settings import Simulation
from foresail.simulate.step import StepResult
from foresail.simulate.whole_step import whole_steps

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = 1000  # of the plot
SUMMED = (
    "launched_groups chosen cancelled_groups tokens decisions migrations preemptions computed_again".split()
)
SHOWN = 32  # instances with a name at the axis


def summarize(simulation: Simulation, results: Sequence[StepResult]) -> dict[str, Any]:
    """Sums and means over all steps, with the assumptions."""
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
        **({} if simulation.workload.tools is None else summarize_episodes(results)),
        **({} if (whole := whole_steps(simulation, results)) is None else {"whole_step": asdict(whole)}),
        "assumptions": simulation.model_dump(),
    }


def summarize_episodes(results: Sequence[StepResult]) -> dict[str, Any]:
    """Turns, and the numbers of episodes waiting for a slot or a tool: mean over time, and maximum."""
    counts = [result.episodes for result in results if result.episodes is not None]
    seconds = sum(result.seconds for result in results)
    figures: dict[str, Any] = {
        "episodes": sum(count.episodes for count in counts),
        "turns": sum(count.turns for count in counts),
        "tool_share": sum(count.tool_seconds for count in counts) / sum(count.seconds for count in counts),
    }
    for name in ("at_tools", "queued"):
        waited = [
            (getattr(place, name), after - place.moment)
            for count, result in zip(counts, results, strict=True)
            for place, after in zip(
                count.places, [p.moment for p in count.places[1:]] + [result.seconds], strict=True
            )
        ]
        figures[f"{name}_mean"] = sum(count * long for count, long in waited) / seconds
        figures[f"{name}_most"] = max(count for count, _ in waited)
    return figures


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
    if "turns" in summary:
        written |= {
            "turns": f"{summary['turns']:,} in {summary['episodes']:,} episodes",
            "at tools": f"{summary['at_tools_mean']:,.1f} episodes on average, {summary['at_tools_most']:,} at "
            f"most; {summary['tool_share']:.0%} of an episode's time",
            "queued": f"{summary['queued_mean']:,.1f} episodes on average, {summary['queued_most']:,} at most",
        }
    if "whole_step" in summary:
        written |= describe_whole_step(summary["whole_step"])
    return [f"{name:11} {text}" for name, text in written.items()]


def describe_whole_step(whole: dict[str, float]) -> dict[str, str]:
    return {
        "update": f"{whole['update_seconds']:,.1f} s a step, {whole['exposed_seconds']:,.1f} of it unhidden "
        f"communication; the slowest rank computes {whole['imbalance']:.2f} times the mean",
        "sync": f"{whole['sync_seconds']:,.2f} s a step",
        "whole step": f"{whole['seconds']:,.1f} s, {whole['tokens_per_card_second']:,.0f} tokens/s a card",
    }


def plot_gantt(results: Sequence[StepResult], path: Path, *, title: str) -> None:
    """Plot a line per instance: white while idle, darker with more rows.

    With tools, the numbers of episodes that wait for one and for a slot are below.
    """
    names = [*results[0].history]
    total = sum(result.seconds for result in results)
    rows = rows_over_time(results, names, np.linspace(0, total, COLUMNS + 1))
    height, has_tools = min(2 + 0.12 * len(names), 8), results[0].episodes is not None
    with new_figure((10, height + 1.6 * has_tools), title=title) as figure:
        from matplotlib.colors import PowerNorm

        if has_tools:
            axes, below = figure.subplots(2, sharex=True, height_ratios=(height, 1.6))
            plot_places(results, below)
        else:
            axes = below = figure.add_subplot()
        image = axes.imshow(
            np.ma.masked_less(rows, 1e-9),  # idle instances are white
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
        below.set_xlabel("simulated seconds")
        figure.colorbar(image, ax=axes, label="rows running", pad=0.01)
    save_figure(figure, path)


def plot_places(results: Sequence[StepResult], axes: Axes) -> None:
    """Episodes without a slot, one step after another on one axis of time."""
    quiet(axes)
    start, moments, at_tools, queued = 0.0, [], [], []
    for result in results:
        assert result.episodes is not None, "there are tools"
        for place in result.episodes.places:
            moments.append(start + place.moment)
            at_tools.append(place.at_tools)
            queued.append(place.queued)
        start += result.seconds
    for counts, color, label in ((at_tools, CORAL, "wait for a tool"), (queued, NAVY, "wait for a slot")):
        axes.step([*moments, start], [*counts, 0], where="post", color=color, linewidth=1.2, label=label)
    axes.set_ylabel("episodes")
    axes.legend(frameon=False, loc="upper right", fontsize=8)


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
