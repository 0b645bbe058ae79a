"""Heat-maps of recall by length and depth, one for each long-context task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from foresail.evaluation.long_context import LongAnswer, by_cell
from foresail.runlog.heat_map import HeatMap, plot_heat_maps

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_answers(answers: Sequence[LongAnswer], title: str = "") -> Figure:
    return plot_heat_maps(to_heat_maps(answers), title=title)


def to_heat_maps(answers: Sequence[LongAnswer]) -> list[HeatMap]:
    cells, maps = by_cell(answers), []
    for task in dict.fromkeys(task for task, _, _ in cells):
        lengths = tuple(dict.fromkeys(length for name, length, _ in cells if name == task))
        depths = tuple(dict.fromkeys(depth for name, _, depth in cells if name == task))
        rows = [[cells[task, length, depth] for length in lengths] for depth in depths]
        maps.append(
            HeatMap(
                title=task,
                rows=tuple("all" if depth is None else f"{depth:.0%}" for depth in depths),
                columns=tuple(map(str, lengths)),
                shares=tuple(tuple(sum(cell) / len(cell) for cell in row) for row in rows),
            )
        )
    return maps
