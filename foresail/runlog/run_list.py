"""Lists the runs of a folder in a table: `foresail runs runs`."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from foresail.runlog.directory import RunDirectory
from foresail.runlog.failure import read_failure
from foresail.runlog.key_metrics import KEY_METRICS, held_out_label, is_shown
from foresail.runlog.lock import is_locked
from foresail.runlog.summary import best_accuracies, last_values

State = Literal["running", "finished", "stopped", "failed", "not begun"]
DEEPEST = 3  # levels of folders that are searched
INNER = ("checkpoints", "rollouts", "tensorboard")  # folders of a run itself
FIRST_METRICS = ("loss", "reward", "accuracy")


@dataclass(frozen=True, kw_only=True)
class RunLine:
    """One line of the table."""

    path: Path
    stage: str
    steps: int
    steps_asked: int | None
    state: State
    last: dict[str, str]  # the first key metrics, by label
    best: str
    changed: float  # seconds since the epoch
    size: int


def find_all(folder: Path, depth: int = DEEPEST) -> Iterator[Path]:
    """Runs at or below a folder, by name, without runs inside runs."""
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}; give a folder of runs")
    if RunDirectory(folder).exists():
        yield folder
    if depth:
        for inner in sorted(path for path in folder.iterdir() if path.is_dir() and path.name not in INNER):
            yield from find_all(inner, depth - 1)


def describe_run(path: Path) -> RunLine:
    run, recipe = RunDirectory(path), read_recipe(path)
    metrics = run.read_metrics()
    last = last_values(metrics)
    shown = {metric.label: metric for metric in KEY_METRICS if is_shown(metric, last)}
    asked = recipe.get("steps")
    best = best_accuracies(metrics)
    top = {held_out_label(name): entry for name, entry in best.items() if name != "rollout/accuracy"}
    return RunLine(
        path=path,
        stage=str(recipe.get("stage", "?")),
        steps=metrics[-1]["step"] if metrics else 0,
        steps_asked=asked if isinstance(asked, int) else None,
        state=read_state(run),
        last={label: shown[label].show(shown[label].find(last)) for label in FIRST_METRICS if label in shown},
        best=", ".join(
            f"{name} {entry['value']:.3g} (step {entry['step']:g})" for name, entry in top.items()
        ),
        changed=max((file.stat().st_mtime for file in path.glob("*") if file.is_file()), default=0.0),
        size=sum(file.stat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink()),
    )


def read_recipe(path: Path) -> dict[str, Any]:
    """The recipe's keys; {} where the recipe is missing or cannot be read."""
    try:
        return tomllib.loads((path / "recipe.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def read_state(run: RunDirectory) -> State:
    if is_locked(run.path):
        return "running"
    if read_failure(run.path) is not None:
        return "failed"
    steps = run.checkpoint_steps()
    if not steps:
        return "stopped" if run.has_begun() else "not begun"
    try:
        progress = json.loads(
            (run.checkpoint_path(steps[-1]) / "trainer" / "progress.json").read_text("utf-8")
        )
        return "finished" if progress["finished"] else "stopped"
    except (OSError, ValueError, KeyError, TypeError):
        return "stopped"


def list_table(lines: Sequence[RunLine], folder: Path) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("run", "stage", "steps", "state", "last", "best held out", "age", "size"):
        table.add_column(name, justify="right" if name in ("steps", "age", "size") else "left")
    for line in lines:
        name = str(line.path.relative_to(folder)) if line.path != folder else line.path.name
        done = f"{line.steps}/{line.steps_asked}" if line.steps_asked else str(line.steps)
        last = ", ".join(f"{label} {value}" for label, value in line.last.items())
        age, size = in_words(time.time() - line.changed), in_bytes(line.size)
        table.add_row(*map(Text, (name, line.stage, done, line.state, last, line.best, age, size)))
    return table


def in_words(seconds: float) -> str:
    """in_words(7300) -> "2 h": the largest unit that fits."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} s"


def in_bytes(count: int) -> str:
    for size, unit in ((10**9, "GB"), (10**6, "MB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1000:.0f} kB"
