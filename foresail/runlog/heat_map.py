"""Plots heat maps of shares over two axes, such as recall by length and depth.

plot_heat_maps([HeatMap(title="niah_single", rows=("0%", "100%"), columns=("512", "1024"), shares=((1.0, 0.9), …))])
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from foresail.runlog.canvas import CORAL, FAINT, GOLD, INK, TEAL, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = (CORAL, GOLD, TEAL)  # of 0, a half and 1
MAX_NUMBERED = 200  # squares; in a larger map they have no numbers


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """`shares[row][column]`, from 0 to 1."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    shares: tuple[tuple[float, ...], ...]


def blend(share: float) -> str:
    """The colour of a share, interpolated between COLOURS: blend(1) -> "#0f9d8f"."""
    place = min(max(share, 0.0), 1.0) * (len(COLOURS) - 1)
    first = min(int(place), len(COLOURS) - 2)
    low, high = (bytes.fromhex(colour[1:]) for colour in COLOURS[first : first + 2])
    mixed = (round(a + (place - first) * (b - a)) for a, b in zip(low, high, strict=True))
    return "#" + bytes(mixed).hex()


def plot_heat_maps(
    maps: Sequence[HeatMap], *, title: str = "", across: str = "length, tokens", down: str = "depth"
) -> Figure:
    columns = min(len(maps), 2)
    rows = math.ceil(len(maps) / columns)
    with new_figure((5.2 * columns, 3.4 * rows + 0.3), title=title) as figure:
        for place, entry in enumerate(maps, start=1):
            axes = figure.add_subplot(rows, columns, place)
            colours = [[blend(share) for share in row] for row in entry.shares]
            axes.imshow([[rgb(colour) for colour in row] for row in colours], aspect="auto")
            mean = sum(map(sum, entry.shares)) / (len(entry.rows) * len(entry.columns))
            axes.set_title(entry.title, loc="left", color=INK, fontsize=10.5, fontweight="bold", pad=8)
            axes.set_title(f"{mean:.1%} on average", loc="right", color=TEAL, fontsize=10.5, pad=8)
            axes.set_xticks(range(len(entry.columns)), entry.columns)
            axes.set_yticks(range(len(entry.rows)), entry.rows)
            axes.tick_params(length=0, colors=FAINT)
            axes.spines[:].set_visible(False)
            axes.set_xlabel(across, color=FAINT)
            axes.set_ylabel(down, color=FAINT)
            if len(entry.rows) * len(entry.columns) <= MAX_NUMBERED:
                for y, row in enumerate(entry.shares):
                    for x, share in enumerate(row):
                        axes.text(
                            x, y, f"{100 * share:.0f}", ha="center", va="center", color=INK, fontsize=7.5
                        )
    return figure


def rgb(colour: str) -> tuple[float, ...]:
    return tuple(part / 255 for part in bytes.fromhex(colour[1:]))
