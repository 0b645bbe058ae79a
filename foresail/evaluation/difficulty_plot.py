"""The picture of graded problems: how many have which pass rate, in the colours of their levels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foresail.evaluation.difficulty import GradedProblem
from foresail.runlog.canvas import INK, new_figure, quiet, save_figure
from foresail.runlog.curriculum_plot import LEVEL_COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_BINS = 20


def try_to_plot(graded: Sequence[GradedProblem], path: Path) -> str:
    """The line to print: where the picture is, or why there is none."""
    try:
        figure = plot_pass_rates(graded)
    except ImportError as error:
        return f"no picture: {error}"
    save_figure(figure, path)
    return f"picture: {path}"


def plot_pass_rates(graded: Sequence[GradedProblem]) -> Figure:
    # one bar a pass rate, as long as there are few
    bins = min(MAX_BINS, max((line.judged for line in graded), default=1) or 1)
    bottoms: Counter[int] = Counter()
    with new_figure((6.4, 3.2)) as figure:
        axes = figure.add_subplot()
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
        quiet(axes, title="Problems by pass rate")
        axes.legend(frameon=False, labelcolor=INK, fontsize=8.5)
    return figure
