"""Plots the timeline of one step as lanes over a time axis.

From above: the parts of the step, running groups, a lane of requests for each instance, and waits for verdicts.
Requests have the colour of their group's outcome. With too many requests a lane shows their number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from foresail.runlog.canvas import CORAL, FAINT, GOLD, INK, NAVY, PAPER, PLUM, TEAL, new_figure, quiet
from foresail.runlog.timeline import Chunk, Span, Timeline
from foresail.runlog.timeline_figures import (
    GroupOutcome,
    count_over_time,
    group_outcomes,
    groups_under_way,
    measure_grading,
    measure_work,
    stack,
    write_seconds,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PART_COLOURS = {"rollout": TEAL, "update": NAVY, "eval": PLUM, "save": FAINT}
Outcomes = Mapping[int, GroupOutcome]
OUTCOMES: dict[GroupOutcome, tuple[str, str]] = {
    "chosen": (TEAL, "learned from"),
    "equal": ("#aebac6", "taught nothing"),
    "surplus": (GOLD, "surplus"),
    "cancelled": (CORAL, "cancelled"),
    "held out": (PLUM, "held out"),
    "open": (FAINT, "unknown"),
}
SHADES = (1.0, 0.7, 0.85)  # to distinguish neighbouring groups of one outcome
MAX_BARS, MAX_ROWS = 3000, 160  # of single requests in a plot
WIDTH, ROW, LANE = 11.0, 0.034, 0.75  # inches


class Lane(NamedTuple):
    """A strip of the plot: its name, its figures, its height in inches, and its plotting function."""

    name: str
    figures: str
    height: float
    plot: Callable[[Axes], None]


def plot_timeline(timeline: Timeline, title: str = "") -> Figure:
    lanes = choose_lanes(timeline)
    heights = [lane.height for lane in lanes]
    size, pads = (WIDTH, sum(heights) + 0.1 * len(lanes) + 1.2), {"w_pad": 0.1, "h_pad": 0.05, "hspace": 0.0}
    with new_figure(size, title=title, pads=pads) as figure:
        rows = figure.subplots(len(lanes), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for axes, lane in zip(rows, lanes, strict=True):
            style_axes(axes, lane)
            lane.plot(axes)
            for closing in timeline.closings:
                axes.axvline(closing.at, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=4)
        rows[-1].set_xlim(0, timeline.seconds or 1.0)
        rows[-1].set_xlabel("seconds since the step began", color=FAINT)
        add_legend(figure, group_outcomes(timeline))
    return figure


# The lanes.


def choose_lanes(timeline: Timeline) -> list[Lane]:
    """The lanes with content; their figures are of the rollout, if there is one."""
    main = (timeline.generating or [timeline])[0]
    lanes = [Lane("step", write_seconds(timeline.seconds), 0.34, partial(plot_parts, timeline=timeline))]
    if timeline.launches:
        figures = f"{len(main.launches)} launched"
        lanes.append(Lane("groups\nunder way", figures, LANE, partial(plot_groups, timeline=timeline)))
    if timeline.chunks:
        lanes.extend(instance_lanes(timeline, main))
    if timeline.waits:
        grading = measure_grading(main.waits)
        figures = f"{grading.verdicts}, mean\n{write_seconds(grading.mean)}"
        plot = partial(plot_count, spans=timeline.waits, colour=GOLD)
        lanes.append(Lane("verdicts\nawaited", figures, LANE, plot))
    return lanes


def instance_lanes(timeline: Timeline, main: Timeline) -> list[Lane]:
    """Lanes of single requests if all fit, else of their number."""
    ran = timeline.instances
    rows = {name: stack(chunks) for name, chunks in ran.items()}
    heights = {name: max(rows[name], default=0) + 1 for name in ran}
    fits = sum(heights.values()) <= MAX_ROWS and len(timeline.chunks) <= MAX_BARS
    outcomes, lanes = group_outcomes(timeline), []
    for name, chunks in ran.items():
        work = measure_work(main.instances.get(name, []), main.parts[0])
        plot: Callable[[Axes], None] = partial(plot_areas, chunks=chunks, outcomes=outcomes)
        height = max(0.3, min(2.4, 8 / len(ran)))
        if fits:
            plot = partial(plot_bars, chunks=chunks, rows=rows[name], outcomes=outcomes)
            height = max(0.4, ROW * heights[name])
        if name in timeline.losses:
            plot = partial(plot_with_loss, plot=plot, at=timeline.losses[name])
        lanes.append(Lane(name, f"{work.busy:.0%} busy\n{work.rows:.3g} rows", height, plot))
    return lanes


def plot_parts(axes: Axes, timeline: Timeline) -> None:
    axes.set_yticks([])
    for part in timeline.parts:
        axes.barh(0, part.seconds, left=part.start, color=PART_COLOURS[part.name], edgecolor=PAPER)
        if part.seconds > 0.06 * timeline.seconds:  # its name fits
            middle = (part.start + part.end) / 2
            axes.text(middle, 0, part.name, ha="center", va="center", color=PAPER, fontweight="bold")
    for closing in timeline.closings:
        write_above(axes, closing.at, "closed", INK)


def plot_groups(axes: Axes, timeline: Timeline) -> None:
    plot_count(axes, groups_under_way(timeline), NAVY)
    for at, count in clusters(timeline.launches.values(), reach=0.02 * timeline.seconds):
        write_above(axes, at, f"+{count}", NAVY)


def plot_count(axes: Axes, spans: Sequence[Span], colour: str) -> None:
    moments, counts = count_over_time(spans)
    axes.fill_between(moments, counts, step="post", color=colour, alpha=0.25, linewidth=0)
    axes.step(moments, counts, where="post", color=colour, linewidth=1)
    axes.set_ylim(0, 1.1 * max([*counts, 1]))


def plot_bars(axes: Axes, chunks: Sequence[Chunk], rows: Sequence[int], outcomes: Outcomes) -> None:
    from matplotlib.colors import to_rgba

    colours = [to_rgba(colour_of(chunk, outcomes), SHADES[chunk.group % len(SHADES)]) for chunk in chunks]
    starts, widths = [chunk.start for chunk in chunks], [chunk.seconds for chunk in chunks]
    axes.barh(rows, widths, left=starts, height=0.8, color=colours, linewidth=0)
    axes.set_ylim(max(rows, default=0) + 0.6, -0.6)
    axes.set_yticks([])


def plot_areas(axes: Axes, chunks: Sequence[Chunk], outcomes: Outcomes) -> None:
    """Stacked areas of running rows by their group's outcome."""
    moments = sorted({moment for chunk in chunks for moment in (chunk.start, chunk.end)})
    below = [0] * len(moments)
    for colour, _ in OUTCOMES.values():
        ours = dict(zip(*count_over_time(c for c in chunks if colour_of(c, outcomes) == colour), strict=True))
        count, above = 0, []
        for moment, base in zip(moments, below, strict=True):
            count = ours.get(moment, count)
            above.append(base + count)
        axes.fill_between(moments, below, above, step="post", color=colour, alpha=0.85, linewidth=0)
        below = above
    axes.set_ylim(0, 1.05 * max([*below, 1]))


def plot_with_loss(axes: Axes, plot: Callable[[Axes], None], at: float) -> None:
    plot(axes)
    axes.axvline(at, color=CORAL, linewidth=1.6)
    axes.text(
        at, 0.5, "  lost", transform=axes.get_xaxis_transform(), va="center", color=CORAL, fontweight="bold"
    )


# Helpers of the lanes.


def colour_of(chunk: Chunk, outcomes: Outcomes) -> str:
    return OUTCOMES[outcomes.get(chunk.group, "open")][0]


def clusters(moments: Iterable[float], reach: float) -> list[tuple[float, int]]:
    """Join moments closer than `reach`, with their number: clusters([0, 0.1, 5], 1) -> [(0, 2), (5, 1)]."""
    clusters: list[tuple[float, int]] = []
    for moment in sorted(moments):
        if clusters and moment - clusters[-1][0] < reach:
            clusters[-1] = clusters[-1][0], clusters[-1][1] + 1
        else:
            clusters.append((moment, 1))
    return clusters


def write_above(axes: Axes, at: float, text: str, colour: str) -> None:
    axes.annotate(
        text,
        (at, 1),
        xycoords=axes.get_xaxis_transform(),
        xytext=(0, 1.5),
        textcoords="offset points",
        ha="center",
        va="bottom",
        fontsize=7.5,
        color=colour,
    )


def style_axes(axes: Axes, lane: Lane) -> None:
    """The lane's name on the left and its figures on the right."""
    from matplotlib.ticker import MaxNLocator

    axes.set_ylabel(lane.name, rotation=0, ha="right", va="center", color=INK)
    axes.yaxis.set_label_coords(-0.04, 0.5)
    axes.text(1.01, 0.5, lane.figures, transform=axes.transAxes, va="center", color=FAINT, fontsize=8)
    quiet(axes, grid="x")
    axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=3))


def add_legend(figure: Figure, outcomes: Outcomes) -> None:
    from matplotlib.patches import Patch

    counts = Counter(outcomes.values())
    patches = [
        Patch(color=colour, label=f"{label}: {counts[outcome]}")
        for outcome, (colour, label) in OUTCOMES.items()
        if counts[outcome]
    ]
    if patches:
        figure.legend(
            handles=patches, loc="outside upper right", ncols=len(patches), frameon=False, labelcolor=INK
        )
