"""Plots a run's curriculum over time: shares and pass rates of difficulty levels, pools, windows and stages.

Panels depend on the logged metrics; a run without levels, pools and stages has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foresail.runlog.canvas import CORAL, FAINT, INK, NAVY, PLUM, TEAL, new_figure, quiet
from foresail.runlog.plots import Record, points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVEL_COLOURS = ("#8fd3c7", "#3fa7a0", "#1d7a9b", "#1d4e89", "#3b2a63")  # light is easy
LEVELS = range(1, 1 + len(LEVEL_COLOURS))
SHARES, ACCURACIES = "rollout/launched_level_", "rollout/accuracy_level_"
POOLS = {
    "pool/easy": ("in the easy pool", TEAL),
    "pool/window_above": ("above the window", CORAL),
    "pool/window_inside": ("in the window", NAVY),
    "pool/window_below": ("below the window", PLUM),
}


def has_curriculum(metrics: Sequence[Record]) -> bool:
    return any(name.startswith((SHARES, "pool/")) for record in metrics for name in record)


def plot_curriculum(metrics: Sequence[Record], title: str = "") -> Figure:
    levelled = any(points(metrics, f"{SHARES}{level}")[0] for level in LEVELS)
    pooled = any(points(metrics, name)[0] for name in POOLS)
    panels = [plot_shares, plot_accuracies] * levelled + [plot_pools] * pooled
    with new_figure((8.6, 2.5 * len(panels) + 0.4), title=title) as figure:
        for place, plot in enumerate(panels, start=1):
            axes = figure.add_subplot(len(panels), 1, place)
            plot(axes, metrics)
            mark_stages(axes, metrics)
            axes.locator_params(axis="x", integer=True, nbins=8)
            axes.legend(
                frameon=False, labelcolor=INK, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8.5
            )
        axes.set_xlabel("step", color=FAINT)
    return figure


def plot_shares(axes: Axes, metrics: Sequence[Record]) -> None:
    """Stacked areas; the space above the top one is the share of problems without a level."""
    steps = [record["step"] for record in metrics if any(name.startswith(SHARES) for name in record)]
    launched = [record for record in metrics if record["step"] in set(steps)]
    shares = [[record.get(f"{SHARES}{level}", 0.0) for record in launched] for level in LEVELS]
    labels = [f"level {level}" for level in LEVELS]
    axes.stackplot(steps, *shares, colors=LEVEL_COLOURS, labels=labels, linewidth=0)
    axes.set_ylim(0, 1)
    quiet(axes, title="Problems launched, by level")


def plot_accuracies(axes: Axes, metrics: Sequence[Record]) -> None:
    for level, colour in zip(LEVELS, LEVEL_COLOURS, strict=True):
        steps, values = points(metrics, f"{ACCURACIES}{level}")
        if steps:
            axes.plot(steps, values, color=colour, linewidth=2, marker=".", label=f"level {level}")
    axes.set_ylim(0, 1.04)
    quiet(axes, title="Right answers, by level")


def plot_pools(axes: Axes, metrics: Sequence[Record]) -> None:
    for metric, (label, colour) in POOLS.items():
        steps, values = points(metrics, metric)
        if steps:
            axes.plot(steps, values, color=colour, linewidth=2, label=label)
    axes.set_ylim(bottom=0)
    quiet(axes, title="Problems by where they stand")


def mark_stages(axes: Axes, metrics: Sequence[Record]) -> None:
    """A line where each stage of the curriculum begins."""
    steps, stages = points(metrics, "curriculum/stage")
    for place in range(1, len(steps)):
        if stages[place] != stages[place - 1]:
            axes.axvline(
                (steps[place - 1] + steps[place]) / 2, color=FAINT, linewidth=1, linestyle=(0, (4, 3))
            )
