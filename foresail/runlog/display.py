"""Shows the progress of a running stage: a live view on a terminal, plain lines elsewhere.

    with Display("rl", total=20) as display:
        display.begin("rollout", total=512)
        display.advance()
        display.update(12, {"critic/rewards/mean": 0.81, "response_length/mean": 21.3})

prints, when piped, `rl 12/20 reward 0.81 length 21.3 left 0:08` without control codes, and in long steps every 30
seconds the current phase: `rl 12/20 rollout 312/512 left 0:21`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from foresail.runlog.key_metrics import (
    DETAIL_METRICS,
    KEY_METRICS,
    KeyMetric,
    as_number,
    groups_used,
    held_out,
    held_out_label,
    is_shown,
    term_label,
    term_names,
)
from foresail.runlog.phase import Phase

BARS = "▁▂▃▄▅▆▇█"
TALL = 32  # terminal lines from which details are shown
QUIET = 30.0  # seconds after which a piped run prints its phase
WATCH = 0.25  # seconds between two checks of the watching thread
RECENT = 20  # updates for the time left: steps take longer as responses grow


class Display:
    """Shows the progress of one stage. `done` is the step a resumed run starts from."""

    def __init__(
        self,
        title: str,
        total: int,
        *,
        done: int = 0,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title = title
        self.total = total
        self.step = done
        self.clock = clock
        self.began = clock()
        self.ticks = deque([(self.began, done)], maxlen=RECENT + 1)
        self.latest: dict[str, str] = {}
        self.histories: dict[str, list[float]] = {}
        self.alarms: Sequence[str] = ()  # standing alarms, a line each
        self.is_stopping: Callable[[], bool] = lambda: False  # whether the run is to stop
        self.phase = Phase("starting")
        self.steps_began: float | None = None  # start of the first step
        self.written = self.began  # time of the last plain line
        self.ended = threading.Event()
        self.console = console or Console(force_terminal=sys.stdout.isatty())
        self.live: Live | None = None
        if self.console.is_terminal and not self.console.is_dumb_terminal:
            # rendered four times a second, so that the clock runs during a long step
            self.live = Live(console=self.console, get_renderable=self.render, refresh_per_second=4)

    def __enter__(self) -> Self:
        if self.live:
            self.live.start()
        threading.Thread(target=self.watch, name="display", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        # also on Ctrl-C and errors: restores the cursor and leaves the last view
        self.ended.set()
        if self.live:
            self.live.stop()

    # Inside a step.

    def begin(self, phase: str, total: int = 0, *, span: tuple[float, float] = (0.0, 0.0)) -> Phase:
        """Begin a phase of `total` items; `span`: see `Phase`."""
        if span[1] and self.steps_began is None:
            self.steps_began = self.clock()
            self.ticks[0] = self.steps_began, self.step  # the time before was no step
        self.phase = Phase(phase, total, span=span)
        return self.phase

    def advance(self, verdict: Future[Any] | None = None) -> None:
        """Count one more item; with a verdict it counts as waiting until that is done."""
        self.phase.advance(verdict)

    def watch(self) -> None:
        """Print the phase of long steps. Runs in a thread, since a signal handler must not print."""
        has_noted = False
        while not self.ended.wait(WATCH):
            if self.live is None:
                self.print_phase_if_due()
            if not has_noted and self.is_stopping():
                has_noted = True
                self.note(f"stopping: {self.describe_stop()}; Ctrl-C again leaves at once", style="yellow")

    def describe_stop(self) -> str:
        """describe_stop() -> "step 13 (rollout 312/512) is finished and saved first, about 0:40"."""
        if self.steps_began is None:
            return f"what is under way ({self.phase}) ends first"
        left = self.step_left()
        about = f", about {clock_time(left)}" if left is not None else ""
        return f"step {self.step + 1} ({self.phase}) is finished and saved first{about}"

    def step_left(self) -> float | None:
        """Seconds left in the current step, from the latest steps or from its progress."""
        (then, first), (now, last) = self.ticks[0], self.ticks[-1]
        waited = self.clock() - now
        if last > first:
            return max((now - then) / (last - first) - waited, 0.0)
        share = self.phase.share_of_step
        return waited / share * (1 - share) if share else None

    def print_phase_if_due(self) -> None:
        """Print a piped run's phase, if it has printed nothing for long."""
        if self.clock() - self.written >= QUIET:
            self.write_line(f"{self.title} {self.step}/{self.total} {self.phase} left {self.time_left()}")

    # After a step.

    def update(self, step: int, metrics: Mapping[str, Any]) -> None:
        self.step, self.phase = step, Phase("next step")
        self.ticks.append((self.clock(), step))
        shown = readings(metrics)
        for label, (value, text) in (shown | readings(metrics, DETAIL_METRICS)).items():
            self.latest[label] = text
            if value is not None:
                self.histories.setdefault(label, []).append(value)
        if self.live is None and self.is_due(step):
            words = [f"{label} {text}" for label, (_, text) in shown.items()]
            self.write_line(
                " ".join([f"{self.title} {step}/{self.total}", *words, f"left {self.time_left()}"])
            )

    def is_due(self, step: int) -> bool:
        """Whether to print a plain line: every step, or one or two hundred of thousands."""
        return step % max(1, self.total // 100) == 0 or step == self.total

    def note(self, text: str, style: str = "") -> None:
        """Print a line above the live view."""
        if self.live:
            self.console.print(Text(self.encodable(text), style=style))
        else:
            self.write_line(text)

    def show_samples(self, step: int, lines: Sequence[str]) -> None:
        """Print responses above the live view; indented lines continue the line before."""
        for line in lines:
            if line.startswith(" "):
                self.note(line)
            else:
                style = "green" if line.startswith("right") else "red"
                self.note(f"sample of step {step}: {line}", style)

    def encodable(self, text: str) -> str:
        """Replace what the terminal cannot write by question marks: a model's text must not end a run."""
        return text.encode(self.console.encoding, errors="replace").decode(self.console.encoding)

    def time_left(self) -> str:
        """Time left, from the latest steps; in the first step from its progress."""
        (then, first), (now, last) = self.ticks[0], self.ticks[-1]
        if last <= first:
            share = self.phase.share_of_step
            if self.steps_began is None or not share:
                return "?"
            step = (self.clock() - self.steps_began) / share
            return f"about {clock_time(step * (self.total - last - share))}"
        # counted from the last update, so it decreases during a step
        waited = self.clock() - now
        left = (now - then) / (last - first) * (self.total - last) - waited
        return clock_time(max(left, 0.0))

    def write_line(self, text: str) -> None:
        # directly to the file: rich would wrap the line
        self.console.file.write(self.encodable(text) + "\n")
        self.console.file.flush()
        self.written = self.clock()

    def render(self) -> Panel:
        """The live view. rich's refreshing thread calls it, so it must not change anything."""
        pretty = self.console.encoding.startswith("utf")
        rows = Table.grid(padding=(0, 2))
        rows.add_column(style="dim")
        rows.add_column(justify="right", style="bold", min_width=7)
        rows.add_column(style="cyan", no_wrap=True)
        details = set() if self.console.height >= TALL else {metric.label for metric in DETAIL_METRICS}
        latest = [(label, text) for label, text in list(self.latest.items()) if label not in details]
        # the width without borders, gaps, label and value; a longer curve would lose its newest end
        width = max(self.console.width - max((len(label) for label, _ in latest), default=0) - 20, 1)
        for label, text in latest:
            curve = sparkline(self.histories.get(label, []), width) if pretty else ""
            rows.add_row(label, text, curve)
        parts: list[RenderableType] = [self.render_progress()]
        if self.latest:
            parts += ["", rows]
        if self.alarms:
            parts += ["", *(Text(line, style="yellow") for line in self.alarms)]
        return Panel(
            Group(*parts),
            title=Text(self.title, style="bold"),
            title_align="left",
            border_style="blue",
            padding=(0, 1),
        )

    def render_progress(self) -> Table:
        line = Table.grid(padding=(0, 2), expand=True)
        line.add_column(no_wrap=True)
        line.add_column(ratio=1)
        line.add_column(no_wrap=True, style="dim")
        line.add_row(
            f"{self.step}/{self.total}  {self.phase}",
            ProgressBar(
                total=self.total,
                completed=self.step + self.phase.share_of_step,
                complete_style="green",
                pulse=self.step == 0 and not self.phase.share_of_step,
            ),
            f"{clock_time(self.clock() - self.began)} gone, {self.time_left()} left",
        )
        return line


def readings(
    metrics: Mapping[str, Any], chosen: Sequence[KeyMetric] = KEY_METRICS
) -> dict[str, tuple[float | None, str]]:
    """readings({"actor/entropy": 0.412}) -> {"entropy": (0.412, "0.41")}, in the order of `chosen`."""
    shown: dict[str, tuple[float | None, str]] = {}
    for metric in chosen:
        if is_shown(metric, metrics):
            value = metric.find(metrics)
            shown[metric.label] = value, metric.show(value)
    if groups := groups_used(metrics):
        shown["groups learned from"] = metrics["rollout/groups_used"], groups
    for name in term_names(metrics):
        shown[term_label(name)] = as_number(metrics[name]), f"{metrics[name]:.2f}"
    for name, value in held_out(metrics).items():
        shown[held_out_label(name)] = value, f"{value:.2f}"
    return shown


def clock_time(seconds: float) -> str:
    """clock_time(8) -> "0:08", clock_time(3723) -> "1:02:03"."""
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def sparkline(values: list[float], width: int) -> str:
    """sparkline([1, 2, 3], 8) -> "▁▅█": the last `width` values between their minimum and maximum."""
    values = values[-width:]
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = high - low or 1.0
    return "".join(BARS[round((value - low) / span * (len(BARS) - 1))] for value in values)
