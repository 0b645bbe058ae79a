"""Plots of a reward model: best-of-n beside the majority and pass@n, and its calibration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foresail.evaluation.pair_figures import PairFigures
from foresail.runlog.canvas import CORAL, FAINT, INK, NAVY, TEAL, new_figure, quiet, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = {
    "pass": ("pass@n: any is right", FAINT),
    "best_of": ("best of n", TEAL),
    "majority": ("majority", NAVY),
}
Figures = Mapping[str, Mapping[str, Mapping[str, float]]]  # by n, then by name


def try_to_save(path: Path, *, best_of: Figures | None = None, pairs: PairFigures | None = None) -> str:
    """The line to print: where the picture is, or why there is none."""
    try:
        figure = plot_reward_model(best_of, pairs)
    except ImportError as error:
        return f"no picture: {error}"
    save_figure(figure, path)
    return f"picture: {path}"


def plot_reward_model(best_of: Figures | None, pairs: PairFigures | None) -> Figure:
    panels: Sequence[object] = [panel for panel in (best_of, pairs) if panel is not None]
    with new_figure((4.8 * len(panels), 3.4)) as figure:
        for number, panel in enumerate(panels, start=1):
            axes = figure.add_subplot(1, len(panels), number)
            if isinstance(panel, PairFigures):
                draw_calibration(axes, panel)
            elif best_of is not None:
                draw_best_of(axes, best_of)
    return figure


def draw_best_of(axes: Axes, figures: Figures) -> None:
    sizes = [int(k) for k in figures]
    for name, (label, colour) in LINES.items():
        rows = [of_size[name] for of_size in figures.values()]
        axes.plot(sizes, [row["value"] for row in rows], color=colour, label=label, linewidth=2)
        lows, highs = [row["low"] for row in rows], [row["high"] for row in rows]
        axes.fill_between(sizes, lows, highs, color=colour, alpha=0.12, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, labels=[str(size) for size in sizes])
    axes.set_xlabel("samples a problem, n", color=FAINT)
    quiet(axes, title="Share of problems solved")
    axes.legend(frameon=False, labelcolor=INK, fontsize=8.5)


def draw_calibration(axes: Axes, figures: PairFigures) -> None:
    axes.plot([0.5, 1], [0.5, 1], color=FAINT, linewidth=1)
    largest = max(bin.count for bin in figures.bins)
    for bin in figures.bins:
        size = 12 + 120 * bin.count / largest
        axes.scatter([bin.confidence], [bin.accuracy], s=size, color=CORAL, alpha=0.85, linewidths=0)
    axes.set_xlabel("how sure the model is", color=FAINT)
    quiet(axes, title=f"How often it is right (ECE {figures.ece:.3f})")
