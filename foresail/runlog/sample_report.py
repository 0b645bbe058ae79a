"""`foresail show RUN --samples`: two responses of a step, to read."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.text import Text

from foresail.runlog.samples import sample_lines
from foresail.runlog.timeline_report import find_run


def show_samples(path: Path, step: int | None = None, console: Console | None = None) -> None:
    """Print a right and a wrong response of one step, by default the last that has any."""
    run, console = find_run(path), console or Console()
    steps = run.rollout_steps()
    if not steps:
        raise ValueError(f"{run.path} has no rollouts; give the folder of an RL run")
    chosen = steps[-1] if step is None else step
    lines = sample_lines(run.read_rollouts(chosen)) or ["no verdict came about"]
    console.print(Text(f"{run.path}, step {chosen}", style="bold"))
    for line in lines:
        console.print(Text(line))
