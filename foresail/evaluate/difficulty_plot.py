"""The picture of graded problems: how many have which pass rate, in the colours of their levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foresail.evaluate.difficulty import GradedProblem
from foresail.runlog.atomic import write_aside
from foresail.runlog.curriculum_plot import LEVEL_COLOURS
from foresail.runlog.plots import FAINT, GRID, INK, PAPER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_BINS = 20


def try_to_draw(graded: Sequence[GradedProblem], path: Path) -> str:
    """Where the picture is, or why there is none: levels are worth having without it."""
    try:
        figure = make_figure(graded)
    except ImportError as error:
        return f"no picture: {error}"
    write_aside(path, lambda aside: figure.savefig(aside, dpi=160, facecolor=PAPER))
    return f"picture: {path}"


def make_figure(graded: Sequence[GradedProblem]) -> Figure:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib; install it with: pip install matplotlib") from error
    figure = Figure(figsize=(6.4, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    # one bar a pass rate, as long as there are few
    bins = min(MOST_BINS, max((line.judged for line in graded), default=1) or 1)
    bottoms: Counter[int] = Counter()
    for level, colour in enumerate(LEVEL_COLOURS, start=1):
        heights = Counter(
            round(bins * line.pass_rate)
            for line in graded
            if line.level == level and line.pass_rate is not None
        )
        for place, height in heights.items():
            axes.bar(place / bins, height, width=0.8 / bins, bottom=bottoms[place], color=colour)
        bottoms += heights
        axes.plot([], [], "s", color=colour, label=f"level {level}: {sum(heights.values())}")
    axes.set_title("Problems by pass rate", loc="left", color=INK, fontweight="bold")
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=FAINT)
    axes.legend(frameon=False, labelcolor=INK, fontsize=8.5)
    return figure
