"""Summarises a run from its files, while it runs or after it has ended.

A folder of runs, such as the quickstart's with `sft/` and `rl/`, is summarised run by run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from foresail.runlog.alarm_monitor import AlarmMonitor
from foresail.runlog.canvas import save_figure
from foresail.runlog.curriculum_plot import has_curriculum, plot_curriculum
from foresail.runlog.directory import RunDirectory
from foresail.runlog.display import clock_time
from foresail.runlog.expert_load_plot import plot_expert_load
from foresail.runlog.failure import read_failure
from foresail.runlog.key_metrics import (
    ACCURACY,
    DETAIL_METRICS,
    KEY_METRICS,
    accuracy_tells,
    as_number,
    groups_used,
    is_held_out,
    is_shown,
    term_label,
    term_names,
)
from foresail.runlog.plots import choose_panels, plot_curves

STAGE_ORDER = ("pretrain", "sft", "dpo", "rl")
TIMING, VERDICT = "timing_s/", "verdict/"


def show(path: Path, console: Console | None = None) -> None:
    """Print the summary of a run and plot its curves: `foresail show RUN`."""
    path, console = Path(path), console or Console()
    console.print(render(summarize(path)))
    try:
        pictures = plot_runs(path)
    except (ImportError, OSError) as error:
        # without plots on a read-only disk or without matplotlib
        console.print(Text(f"no curves drawn: {error}"))
        return
    for picture in pictures:
        console.print(Text(f"curves: {picture}"))


def summarize(path: Path) -> dict[str, Any]:
    """`{"run", "steps", "last", "best_accuracy", "seconds", "verdicts", "alarms", "checkpoints", …}`.

    "runs" holds the same for every run inside, by name; "summary" is the run's summary.json.
    """
    path = Path(path)
    inner = find_runs(path)
    metrics = RunDirectory(path).read_metrics()
    return {
        "run": str(path),
        "steps": metrics[-1]["step"] if metrics else 0,
        "last": last_values(metrics),
        "best_accuracy": best_accuracies(metrics),
        "seconds": sum_by_name(metrics, TIMING),
        "verdicts": {
            name: sum(shares) / len(shares) for name, shares in values_by_name(metrics, VERDICT).items()
        },
        "alarms": list_alarms(metrics),
        "failure": read_failure(path),
        "checkpoints": RunDirectory(path).checkpoint_steps(),
        "summary": read_summary(path / "summary.json"),
        "runs": {run.name: summarize(run) for run in inner},
    }


def find_runs(path: Path) -> list[Path]:
    """The runs inside a folder, in the order of the stages; an error if there are none."""
    if not path.is_dir():
        raise FileNotFoundError(f"there is no folder {path}; give the folder of a run")
    inner = [folder for folder in path.iterdir() if RunDirectory(folder).exists()]
    if not inner and not RunDirectory(path).exists():
        raise ValueError(
            f"{path} is no run: it has neither recipe.toml nor metrics.jsonl, nor a folder that has; "
            "give the folder that holds them"
        )
    return sorted(inner, key=lambda run: ([*STAGE_ORDER, run.name].index(run.name), run.name))


def find_run(path: Path) -> RunDirectory:
    """The run itself; in a folder of runs `rl`, or the last with a timeline."""
    inner = [run for run in find_runs(path) if RunDirectory(run).timeline.path.exists()]
    if RunDirectory(path).exists() or not inner:
        return RunDirectory(path)
    return RunDirectory(path / "rl" if path / "rl" in inner else inner[-1])


def last_values(metrics: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The newest value of every metric, since evaluations are logged only in some steps."""
    newest: dict[str, Any] = {}
    for record in metrics:
        newest.update(record)
    newest.pop("step", None)
    return newest


def best_accuracies(metrics: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """best_accuracies([…]) -> {"rollout/accuracy": {"value": 0.99, "step": 18}}, the first step with it.

    An accuracy of 0 is left out if a user's function gives scores, since it does not say what is right.
    """
    best: dict[str, dict[str, float]] = {}
    for record in metrics:
        for name in record:
            value = as_number(record[name])
            if value is None or not (name == ACCURACY or is_held_out(name)):
                continue
            if name == ACCURACY and not accuracy_tells(record):
                continue
            if name not in best or value > best[name]["value"]:
                best[name] = {"value": value, "step": record["step"]}
    return best


def sum_by_name(metrics: Sequence[Mapping[str, Any]], prefix: str) -> dict[str, float]:
    """Sums of all metrics with a prefix, the greatest first."""
    sums = {name: sum(values) for name, values in values_by_name(metrics, prefix).items()}
    return dict(sorted(sums.items(), key=lambda entry: -entry[1]))


def values_by_name(metrics: Sequence[Mapping[str, Any]], prefix: str) -> dict[str, list[float]]:
    values_of: dict[str, list[float]] = {}
    for record in metrics:
        for name in record:
            if name.startswith(prefix) and (value := as_number(record[name])) is not None:
                values_of.setdefault(name.removeprefix(prefix), []).append(value)
    return values_of


def list_alarms(metrics: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every alarm of the run, in order: `{"step", "name", "text", "standing"}`."""
    monitor = AlarmMonitor(metrics)
    standing = list(monitor.standing.values())
    return [
        {
            "step": raised.step,
            "name": raised.alarm.name,
            "text": str(raised.alarm),
            "standing": raised in standing,
        }
        for raised in monitor.raised
    ]


def read_summary(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {"unreadable": f"{path} is not JSON; the other files are not touched by that"}
    return content if isinstance(content, dict) else {"content": content}


def render(summary: Mapping[str, Any]) -> RenderableType:
    """The summary as tables, for a rich console; piped, they are plain text."""
    parts: list[RenderableType] = []
    if summary["last"] or not summary["runs"]:
        parts.append(render_run(summary))
    parts.extend(render(run) for run in summary["runs"].values())
    if summary["summary"]:
        rows = ((name, write(value)) for name, value in flatten(summary["summary"]))
        parts.append(make_table(f"{summary['run']}/summary.json", rows))
    return Group(*parts)


def render_run(summary: Mapping[str, Any]) -> RenderableType:
    steps = str(summary["steps"]) if summary["last"] else "none yet"
    rows = [("steps", steps)]
    for metric in (*KEY_METRICS, *DETAIL_METRICS):
        if is_shown(metric, summary["last"]) and (value := metric.find(summary["last"])) is not None:
            rows.append((metric.label, metric.show(value)))
    if groups := groups_used(summary["last"]):
        rows.append(("groups learned from", groups))
    for name in term_names(summary["last"]):
        rows.append((f"reward, {term_label(name)}", write(summary["last"][name])))
    for name, best in summary["best_accuracy"].items():
        now = summary["last"][name]
        rows.append((name, f"{write(now)}, best {write(best['value'])} at step {best['step']}"))
    for part, seconds in summary["seconds"].items():
        rows.append((f"time, {part}", clock_time(seconds)))
    for status, share in summary["verdicts"].items():
        rows.append((f"verdicts, {status}", f"{100 * share:.1f} %"))
    for alarm in summary["alarms"]:
        rows.append(
            (f"alarm, step {alarm['step']}", alarm["text"] + ("" if alarm["standing"] else " (over)"))
        )
    if summary["failure"] is not None:
        rows.append(("failed", f"{summary['failure']} (error.txt has more)"))
    if summary["checkpoints"]:
        rows.append(("checkpoints", ", ".join(f"step_{step}" for step in summary["checkpoints"])))
    return make_table(summary["run"], iter(rows))


def make_table(title: str, rows: Iterator[tuple[str, str]]) -> RenderableType:
    table = Table(show_header=False, box=None)
    table.add_column(style="dim")
    table.add_column()
    for name, value in rows:
        table.add_row(Text(name), Text(value))
    # a title inside the table would be wrapped at its width
    return Group(Text(title, style="bold"), table, "")


def flatten(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """flatten({"accuracy": {"before": 0.4}, "samples": ["a"]}) -> ("accuracy before", 0.4), ("samples 1", "a")."""
    for name, value in content.items():
        if isinstance(value, list):
            value = {str(number): entry for number, entry in enumerate(value, start=1)}
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", value


def write(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def plot_runs(path: Path) -> list[Path]:
    """Write curves.png of each run inside; a folder of runs also gets that of `rl`, or of the last."""
    pictures = []
    for run in [path, *find_runs(path)]:
        metrics = RunDirectory(run).read_metrics()
        if choose_panels(metrics):
            save_figure(plot_curves(metrics, run.name), run / "curves.png")
            pictures.append(run / "curves.png")
        if has_curriculum(metrics):
            save_figure(plot_curriculum(metrics, run.name), run / "curriculum.png")
            pictures.append(run / "curriculum.png")
        if loads := RunDirectory(run).read_expert_load():
            save_figure(plot_expert_load(loads, run.name), run / "expert_load.png")
            pictures.append(run / "expert_load.png")
    if pictures and pictures[0].parent != path:
        inner = [picture.parent for picture in pictures]
        chosen = path / "rl" if path / "rl" in inner else inner[-1]
        save_figure(plot_curves(RunDirectory(chosen).read_metrics(), path.name), path / "curves.png")
        pictures.append(path / "curves.png")
    return pictures
