"""Common parts of all plots: colours, plain axes, figures without a window, atomic saving.

with new_figure((8, 3), title="Accuracy") as figure:
    axes = figure.add_subplot()
    quiet(axes)
save_figure(figure, path)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from foresail.runlog.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER, INK, FAINT, GRID = "#ffffff", "#1f2933", "#7b8794", "#e8ecf0"
NAVY, TEAL, CORAL, GOLD, PLUM = "#1d4e89", "#0f9d8f", "#ef6f53", "#e0a526", "#7a4f9a"


@contextmanager
def new_figure(
    size: tuple[float, float], *, title: str = "", pads: Mapping[str, Any] | None = None
) -> Iterator[Figure]:
    """A figure of this size in inches, with our fonts inside the block. `pads` are a constrained layout's."""
    try:
        from matplotlib import rc_context
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise ImportError("plots need matplotlib; install it with: pip install matplotlib") from error
    with rc_context({"font.family": "DejaVu Sans", "font.size": 9.5}):
        figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(**pads or {}))
        FigureCanvasAgg(figure)
        if title:
            figure.suptitle(title, x=0.015, ha="left", color=INK, fontsize=14, fontweight="bold")
        yield figure


def save_figure(figure: Figure, path: Path) -> None:
    """Save as PNG, PDF or SVG, by the suffix."""
    write_atomically(path, lambda temporary: figure.savefig(temporary, dpi=160, facecolor=PAPER))


def quiet(axes: Axes, *, title: str = "", grid: Literal["x", "y"] = "y") -> None:
    """Remove box and ticks, and draw a faint grid."""
    if title:
        axes.set_title(title, loc="left", color=INK, fontsize=10.5, fontweight="bold", pad=8)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(GRID)
    axes.grid(axis=grid, color=GRID, linewidth=1)
    axes.set_axisbelow(True)
    axes.tick_params(length=0, colors=FAINT)
