"""Plots a run's curves from its metrics.

Panels depend on the logged metrics. RL shows accuracy, length, entropy and speed; SFT shows loss, entropy, learning
rate and speed; pretraining also the loss on held-out corpora. The reward comes first where scores are more than
right or wrong, or without an accuracy; its terms have their own panel.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

from foresail.runlog.canvas import CORAL, FAINT, GOLD, INK, NAVY, PAPER, PLUM, TEAL, new_figure, quiet
from foresail.runlog.key_metrics import (
    ACCURACY,
    HELD_OUT_LOSS,
    REWARD,
    as_number,
    has_own_scores,
    held_out_label,
    is_held_out,
    is_held_out_reward,
    term_label,
    term_names,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Record = dict[str, Any]
Points = tuple[list[int], list[float]]
Unit = Literal["share", "count", "decimal", "tiny"]
Digest = Literal["first to last", "mean", "peak"]

HELD_OUT_COLOURS = (NAVY, CORAL, PLUM)
LINE_COLOURS = (TEAL, CORAL, PLUM, GOLD)
MOST_PANELS = 4
CLOSE_LOOK = 0.4  # shares below it get a shorter axis than up to 1
SMOOTH_FROM = 60  # points from which a running mean is drawn


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A small plot of one metric, shown if that has points.

    `unit` says how numbers are written, `digest` which are in the corner; `held_out` adds the accuracies or rewards
    on held-out problems. `lines` are several metrics in one panel.
    """

    title: str
    name: str
    colour: str
    unit: Unit = "decimal"
    digest: Digest = "first to last"
    held_out: Literal["", "accuracy", "reward"] = ""
    lines: tuple[str, ...] = ()


ACCURACY_PANEL = Panel(title="Accuracy", name=ACCURACY, colour=TEAL, unit="share", held_out="accuracy")
REWARD_PANEL = Panel(title="Reward", name=REWARD, colour=TEAL, held_out="reward")
PANELS = (
    Panel(title="Loss", name="train/loss", colour=TEAL),
    Panel(title="Response length, tokens", name="response_length/mean", colour=CORAL, unit="count"),
    Panel(title="Entropy, nats per token", name="actor/entropy", colour=PLUM),
    Panel(title="Learning rate", name="train/lr", colour=GOLD, unit="tiny", digest="peak"),
    Panel(title="Speed, tokens per second", name="perf/throughput", colour=NAVY, unit="count", digest="mean"),
    Panel(title="Gradient norm", name="actor/grad_norm", colour=GOLD, digest="mean"),
    Panel(title="Policy loss", name="actor/pg_loss", colour=CORAL, unit="tiny"),
    Panel(title="Seconds per step", name="timing_s/step", colour=FAINT, digest="mean"),
)


def plot_curves(metrics: Sequence[Record], title: str = "") -> Figure:
    """The panels that the records have points for."""
    panels = choose_panels(metrics)
    if not panels:
        raise ValueError("there is nothing to plot yet: no step has logged any of the plotted metrics")
    metrics = [record for record in metrics if is_plotted(record, panels)]
    columns = min(len(panels), 2)
    rows = math.ceil(len(panels) / columns)
    pads = {"w_pad": 0.14, "h_pad": 0.12, "hspace": 0.04, "wspace": 0.04}
    with new_figure((4.9 * columns, 2.75 * rows + 0.3), title=title, pads=pads) as figure:
        for place, panel in enumerate(panels, start=1):
            axes = figure.add_subplot(rows, columns, place)
            plot_panel(axes, panel, metrics)
            if place > len(panels) - columns:
                axes.set_xlabel("step", color=FAINT)
    return figure


def plot_panel(axes: Axes, panel: Panel, metrics: Sequence[Record]) -> None:
    style_axes(axes, panel)
    if panel.lines:
        drawn, colour = plot_lines(axes, panel.lines, metrics), panel.colour
    else:
        drawn, colour = plot_curve(axes, panel, *points(metrics, panel.name)), panel.colour
    if held_out := held_out_names(metrics, panel):
        plot_held_out(axes, held_out, metrics)
        drawn, colour = points(metrics, held_out[0])[1], HELD_OUT_COLOURS[0]
        axes.legend(frameon=False, labelcolor=INK, loc="best", handlelength=1.6)

    first, last = metrics[0]["step"], metrics[-1]["step"]
    margin = 0.03 * max(last - first, 1)
    # without values of step 0 the axis begins with the first step
    axes.set_xlim(first - (0 if 0 < first < last else margin), last + margin)
    if panel.unit == "share" and axes.dataLim.y1 > CLOSE_LOOK:
        axes.set_ylim(0, 1.04)
    elif min(drawn) >= 0:
        axes.set_ylim(bottom=0)
    corner = "" if panel.lines else sum_up(drawn, panel.digest, panel.unit)
    axes.set_title(corner, loc="right", color=colour, fontsize=10.5, fontweight="bold", pad=8)


def plot_curve(axes: Axes, panel: Panel, steps: list[int], values: list[float]) -> list[float]:
    """Draw a curve, with a running mean if it is long; returns the prominent values."""
    if not steps:
        return []
    drawn = values
    if panel.digest != "peak" and len(values) >= SMOOTH_FROM:
        drawn = running_mean(values, len(values) // 30)
        axes.plot(steps, values, color=panel.colour, alpha=0.25, linewidth=0.9)
    axes.plot(
        steps, drawn, color=panel.colour, linewidth=2.2, label="training problems", solid_capstyle="round"
    )
    axes.plot(
        steps[-1],
        drawn[-1],
        "o",
        color=panel.colour,
        markersize=5.5,
        markeredgecolor=PAPER,
        zorder=5,
        clip_on=False,
    )
    if not panel.held_out:
        axes.fill_between(steps, drawn, min(0.0, *drawn), color=panel.colour, alpha=0.07, linewidth=0)
    return drawn


def plot_lines(axes: Axes, names: Sequence[str], metrics: Sequence[Record]) -> list[float]:
    """Draw a reward's terms, or losses, with their names; returns all values."""
    drawn: list[float] = []
    for name, colour in zip(names, cycle(LINE_COLOURS), strict=False):
        steps, values = points(metrics, name)
        axes.plot(steps, values, color=colour, linewidth=1.8, label=term_label(name), solid_capstyle="round")
        drawn += values
    axes.legend(frameon=False, labelcolor=INK, loc="best", handlelength=1.6)
    return drawn


def plot_held_out(axes: Axes, names: Sequence[str], metrics: Sequence[Record]) -> None:
    """Draw held-out accuracies or rewards as diamonds."""
    for name, colour in zip(names, cycle(HELD_OUT_COLOURS), strict=False):
        steps, values = points(metrics, name)
        axes.plot(
            steps,
            values,
            marker="D",
            color=colour,
            markersize=6.5 if len(steps) <= 12 else 3.5,
            markeredgecolor=PAPER,
            markeredgewidth=0.8,
            linestyle=(0, (1, 2)),
            linewidth=1.2,
            zorder=6,
            clip_on=False,
            label=f"held out, {held_out_label(name)}",
        )


def style_axes(axes: Axes, panel: Panel) -> None:
    """Plain axes with few ticks, at whole steps."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    quiet(axes, title=panel.title)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5))
    if panel.unit != "decimal":
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: write_number(value, panel.unit)))


def choose_panels(metrics: Sequence[Record]) -> list[Panel]:
    loss, *others = PANELS
    panels = (*first_panels(metrics), loss, *held_out_losses(metrics), *others)
    return [panel for panel in panels if appears(panel, metrics)][:MOST_PANELS]


def held_out_losses(metrics: Sequence[Record]) -> list[Panel]:
    """The loss on every held-out corpus, in pretraining."""
    names = tuple(name for name in all_names(metrics) if name.startswith(HELD_OUT_LOSS))
    return [Panel(title="Held-out loss", name=names[0], colour=NAVY, lines=names)] if names else []


def first_panels(metrics: Sequence[Record]) -> list[Panel]:
    """The main panels of RL: accuracy, or the reward if that says more, and the reward's terms."""
    names = tuple(name for name in term_names(all_names(metrics)) if points(metrics, name)[0])
    terms = [Panel(title="Reward terms", name=names[0], colour=TEAL, lines=names)] if names else []
    if appears(ACCURACY_PANEL, metrics) and not any(map(has_own_scores, metrics)):
        return [ACCURACY_PANEL, *terms]  # here the reward mostly repeats the accuracy
    accuracies = [ACCURACY, *held_out_names(metrics, ACCURACY_PANEL)]
    tells = any(value > 0 for name in accuracies for value in points(metrics, name)[1])
    return [REWARD_PANEL, *terms, *([ACCURACY_PANEL] if tells else [])]


def appears(panel: Panel, metrics: Sequence[Record]) -> bool:
    return bool(points(metrics, panel.name)[0] or held_out_names(metrics, panel))


def is_plotted(record: Record, panels: Sequence[Panel]) -> bool:
    """Whether a record has a point in any panel; axes span these records."""
    return any(
        as_number(record.get(name)) is not None
        for panel in panels
        for name in (panel.name, *panel.lines, *held_out_names([record], panel))
    )


def held_out_names(metrics: Sequence[Record], panel: Panel) -> list[str]:
    if not panel.held_out:
        return []
    is_chosen = is_held_out if panel.held_out == "accuracy" else is_held_out_reward
    return [name for name in all_names(metrics) if is_chosen(name) and points(metrics, name)[0]]


def all_names(metrics: Sequence[Record]) -> dict[str, None]:
    return dict.fromkeys(name for record in metrics for name in record)


def points(metrics: Sequence[Record], name: str) -> Points:
    """Steps and values of a metric, without missing values."""
    pairs = [
        (record["step"], value) for record in metrics if (value := as_number(record.get(name))) is not None
    ]
    return [step for step, _ in pairs], [value for _, value in pairs]


def running_mean(values: list[float], reach: int) -> list[float]:
    """running_mean([0, 1, 5], 1) -> [0.5, 2, 3]: means over `reach` neighbours on both sides."""
    windows = [values[max(place - reach, 0) : place + reach + 1] for place in range(len(values))]
    return [sum(window) / len(window) for window in windows]


def sum_up(values: list[float], digest: Digest, unit: Unit) -> str:
    """sum_up([9, 12, 31], "first to last", "count") -> "9 → 31"."""
    if digest == "mean":
        return f"{write_number(sum(values) / len(values), unit)} on average"
    if digest == "peak":
        return f"{write_number(max(values), unit)} at most"
    return " → ".join(write_number(value, unit) for value in dict.fromkeys((values[0], values[-1])))


def write_number(value: float, unit: Unit) -> str:
    """write_number(15200, "count") -> "15.2k", write_number(0.985, "share") -> "98.5%"."""
    if unit == "share":
        return f"{100 * value:.3g}%"
    if unit == "tiny":
        return f"{value:.1e}" if value else "0"
    if unit == "decimal":
        return f"{value:.2f}"
    for size, suffix in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{suffix}"
    return f"{value:.1f}".removesuffix(".0")
