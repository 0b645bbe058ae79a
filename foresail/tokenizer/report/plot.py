"""The picture of a report: a panel for each language, a bar for each tokenizer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from foresail.runlog.canvas import FAINT, GRID, INK, NAVY, TEAL, new_figure, quiet, save_figure
from foresail.tokenizer.report.tables import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLUMNS = 4
TITLE = "Tokens per character"


def plot(results: Results, ours: int = 1) -> Figure:
    """The first `ours` tokenizers are drawn in another colour."""
    names = [*results]
    languages = [*next(iter(results.values()))]
    rows = -(-len(languages) // COLUMNS)
    columns = min(COLUMNS, len(languages))
    size = (1.2 + 2.4 * columns, 0.7 + rows * (0.55 + 0.24 * len(names)))
    with new_figure(size, title=TITLE) as figure:
        for number, language in enumerate(languages):
            axes = figure.add_subplot(rows, columns, number + 1)
            values = [results[name][language].per_character for name in names]
            colours = [TEAL if place < ours else NAVY for place in range(len(names))]
            bars = axes.barh(names, values, color=colours, height=0.7)
            bars[values.index(min(values))].set_edgecolor(INK)
            for bar, value in zip(bars, values, strict=True):
                axes.text(
                    value,
                    bar.get_y() + bar.get_height() / 2,
                    f" {value:.3f}",
                    va="center",
                    color=INK,
                    fontsize=7.5,
                )
            axes.invert_yaxis()
            axes.set_xlim(0, 1.25 * max(values))
            quiet(axes, title=language, grid="x")
            axes.set_xticks([])
            axes.spines["bottom"].set_color(GRID)
            if number % columns:
                axes.set_yticks([])
            axes.tick_params(labelsize=8.5, colors=FAINT)
    return figure


def draw(results: Results, path: Path, ours: int = 1) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    save_figure(plot(results, ours), path)
