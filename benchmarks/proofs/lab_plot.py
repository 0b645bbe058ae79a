"""The picture of a lab: a line of every arm and seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from foresail.runlog.canvas import CORAL, FAINT, GOLD, INK, NAVY, PLUM, TEAL, new_figure, quiet, save_figure

COLOURS = (NAVY, TEAL, CORAL, GOLD, PLUM, FAINT)


def draw_arms(
    picture: Path,
    arms: Mapping[str, Sequence[Sequence[tuple[float, float]]]],
    *,
    title: str,
    below: str,
    base: int | None = None,
) -> None:
    """`arms`: by name, the points of every seed; `below` names what goes right, in powers of `base` where given."""
    with new_figure((6.4, 3.6)) as figure:
        axes = figure.add_subplot()
        for (name, seeds), colour in zip(arms.items(), COLOURS, strict=False):
            for number, points in enumerate(seeds):
                style = "o" if len(points) == 1 else "-"
                label = None if number else name
                axes.plot(
                    *zip(*points, strict=True), style, color=colour, alpha=0.75, linewidth=1.6, label=label
                )
        if base:
            places = sorted({x for seeds in arms.values() for points in seeds for x, _ in points})
            axes.set_xscale("log", base=base)
            axes.set_xticks(places, labels=[f"{x:g}" for x in places])
        axes.set_xlabel(below, color=FAINT)
        quiet(axes, title=title)
        axes.legend(frameon=False, labelcolor=INK, fontsize=8.5)
    save_figure(figure, picture)
