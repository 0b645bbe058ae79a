"""The two pictures of `vs_trl.py`: the race, and step time against size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from foresail.runlog.canvas import CORAL, FAINT, INK, NAVY, TEAL, new_figure, quiet, save_figure

COLOURS = {"theirs": CORAL, "ours": TEAL}
NAMES = {"theirs": "TRL", "ours": "Foresail"}


def draw_race(laps: Sequence[dict[str, Any]], path: Path, *, window: int) -> None:
    """Reward against seconds; a line per seed."""
    figure, (axes,) = make_panels(1)
    for side, colour in COLOURS.items():
        curves = [lap["curves"][side] for lap in laps]
        for number, points in enumerate(filter(None, curves)):  # none where it was stopped too soon
            seconds, rewards = zip(*points, strict=True)
            label = NAMES[side] if number == 0 else None
            axes.plot(seconds, rewards, color=colour, linewidth=1.6, alpha=0.85, label=label)
    axes.set_title(f"Reward, mean of {window} steps", loc="left", color=INK)
    axes.set_xlabel("seconds", color=FAINT)
    axes.set_ylim(0, 1.02)
    axes.legend(frameon=False, loc="lower right")
    save_figure(figure, path)


def draw_scaling(sweeps: dict[str, dict[str, Any]], path: Path) -> None:
    """Seconds a step against what is varied, both from zero, with the line through the points."""
    figure, panels = make_panels(len(sweeps))
    for axes, (name, sweep) in zip(panels, sweeps.items(), strict=True):
        sizes = [point["size"] for point in sweep["points"]]
        for part, colour in (("step", INK), ("rollout", TEAL), ("update", NAVY)):
            values = [point[part] for point in sweep["points"]]
            axes.plot(sizes, values, "o-", color=colour, linewidth=1.4, markersize=4, label=part)
        ends = [0, max(sizes)]
        axes.plot(
            ends,
            [sweep["intercept"] + sweep["slope"] * size for size in ends],
            "--",
            color=FAINT,
            linewidth=1,
        )
        axes.set_title(f"Seconds a step by {name}", loc="left", color=INK)
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
    panels[0].legend(frameon=False, loc="upper left")
    save_figure(figure, path)


def make_panels(count: int) -> tuple[Any, list[Any]]:
    with new_figure((5.2 * count, 3.6)) as figure:
        panels = [figure.add_subplot(1, count, number + 1) for number in range(count)]
        for axes in panels:
            quiet(axes)
    return figure, panels
