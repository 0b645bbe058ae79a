"""The display of a run in a notebook: progress and curves in one picture that is updated."""

from __future__ import annotations

import html
import sys
import threading
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from foresail.runlog.canvas import PAPER
from foresail.runlog.display import Display, clock_time
from foresail.runlog.plots import choose_panels, plot_curves

PROGRESS_SECONDS = 1.0  # between two progress updates
CURVES_SECONDS = 5.0  # between two plots, which take a tenth of a second each


def in_notebook() -> bool:
    """Whether this runs in Jupyter; IPython in a terminal counts as a terminal."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and getattr(shell, "kernel", None) is not None


def open_display(title: str, total: int, *, done: int = 0) -> Display:
    """The display for a notebook or a terminal."""
    return (NotebookDisplay if in_notebook() else Display)(title, total, done=done)


def show_picture(path: Path) -> None:
    from IPython.display import Image, display

    display(Image(filename=str(path)))


class NotebookDisplay(Display):
    """A line of text, a bar and the curves; notes are printed above."""

    def __init__(self, title: str, total: int, *, done: int = 0) -> None:
        super().__init__(title, total, done=done)
        self.records: list[dict[str, Any]] = []
        self.drawn = -CURVES_SECONDS

    def __enter__(self) -> NotebookDisplay:
        from IPython.display import HTML, display

        self.text = display(HTML(self.describe()), display_id=True)
        self.curves = display(HTML(""), display_id=True)
        threading.Thread(target=self.keep_up, name="display", daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.ended.set()
        self.show_progress()
        self.show_curves()

    def update(self, step: int, metrics: Mapping[str, Any]) -> None:
        self.records.append({"step": step, **metrics})
        super().update(step, metrics)
        if self.clock() - self.drawn >= CURVES_SECONDS:
            self.show_curves()

    def is_due(self, step: int) -> bool:
        """Prints no plain lines, since the picture shows the progress."""
        return False

    def keep_up(self) -> None:
        while not self.ended.wait(PROGRESS_SECONDS):
            self.show_progress()

    def show_progress(self) -> None:
        from IPython.display import HTML

        self.text.update(HTML(self.describe()))

    def show_curves(self) -> None:
        from IPython.display import Image

        self.drawn = self.clock()
        if not choose_panels(self.records):
            return
        picture = BytesIO()
        plot_curves(self.records, self.title).savefig(picture, format="png", dpi=120, facecolor=PAPER)
        self.curves.update(Image(data=picture.getvalue()))

    def describe(self) -> str:
        """One line and a bar: "rl 12/20, rollout 312/512, 0:41 gone, 0:08 left"."""
        gone = clock_time(self.clock() - self.began)
        words = f"{self.title} {self.step}/{self.total}, {self.phase}, {gone} gone, {self.time_left()} left"
        values = "".join(f" &nbsp; {label} <b>{html.escape(text)}</b>" for label, text in self.latest.items())
        alarms = "".join(f"<br>{html.escape(line)}" for line in self.alarms)
        done = self.step + self.phase.share_of_step
        bar = f'<progress value="{done}" max="{self.total}" style="width:24em"></progress>'
        return f"{bar} {html.escape(words)}<br>{values}{alarms}"
