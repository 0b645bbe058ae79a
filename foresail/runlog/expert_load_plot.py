"""Plots the load of a model's experts: of each expert at the end, and of the busiest over time."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from foresail.runlog.canvas import CORAL, FAINT, INK, NAVY, PAPER, TEAL, new_figure, quiet

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BUSIEST = 2.0  # times the mean load: the colour scale ends here


def plot_expert_load(records: Sequence[dict[str, Any]], title: str = "") -> Figure:
    """`records` are lines of expert_load.jsonl: {"step": 12, "load": [[3, 5], [4, 4]]}."""
    with new_figure((8.6, 5.4), title=title) as figure:
        draw_last(figure.add_subplot(2, 1, 1), figure, records[-1])
        draw_history(figure.add_subplot(2, 1, 2), records)
    return figure


def relative(record: dict[str, Any]) -> list[list[float]]:
    """relative({"load": [[3, 5]]}) -> [[0.75, 1.25]]: over the layer's mean."""
    return [[tokens / fmean(layer) for tokens in layer] for layer in record["load"]]


def draw_last(axes: Axes, figure: Figure, record: dict[str, Any]) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.ticker import MaxNLocator

    colours = LinearSegmentedColormap.from_list("load", [NAVY, PAPER, CORAL])
    image = axes.imshow(
        relative(record), aspect="auto", cmap=colours, vmin=0, vmax=BUSIEST, interpolation="nearest"
    )
    quiet(axes, title=f"Tokens over the layer's mean, step {record['step']}")
    axes.grid(False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True, nbins=8))
    axes.set_xlabel("expert", color=FAINT)
    axes.set_ylabel("layer with experts", color=FAINT)
    bar = figure.colorbar(image, ax=axes, extend="max", shrink=0.9)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0, colors=FAINT)


def draw_history(axes: Axes, records: Sequence[dict[str, Any]]) -> None:
    """A line at the mean load, and bands of the busiest and the idlest expert of each layer."""
    steps = [record["step"] for record in records]
    loads = [relative(record) for record in records]
    for name, colour, values in (
        ("busiest", CORAL, [[*map(max, layers)] for layers in loads]),
        ("idlest", TEAL, [[*map(min, layers)] for layers in loads]),
    ):
        lowest, highest = [[*map(choose, values)] for choose in (min, max)]
        axes.fill_between(steps, lowest, highest, color=colour, alpha=0.18, linewidth=0)
        means = [*map(fmean, values)]
        axes.plot(steps, means, color=colour, linewidth=2, label=f"{name} expert, mean of layers")
    axes.axhline(1, color=FAINT, linewidth=1, linestyle=(0, (4, 3)))
    axes.set_ylim(bottom=0)
    axes.locator_params(axis="x", integer=True, nbins=8)
    axes.set_xlabel("step", color=FAINT)
    quiet(axes, title="Load over the mean, and its range over layers")
    axes.legend(frameon=False, labelcolor=INK, loc="best")
