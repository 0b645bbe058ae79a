"""`foresail show RUN --timeline`: a step's figures on the terminal, its picture in the run's folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from foresail.runlog.directory import RunDirectory
from foresail.runlog.summary import find_runs, make_table
from foresail.runlog.timeline import Timeline, read_step
from foresail.runlog.timeline_figures import (
    Grading,
    Work,
    measure_grading,
    measure_work,
    tail_seconds,
    write_seconds,
)
from foresail.runlog.timeline_plot import draw_timeline


def show_timeline(path: Path, step: int | None = None, console: Console | None = None) -> None:
    """Print and draw who did what when in one step, by default the last."""
    run, console = find_run(path), console or Console()
    try:
        timeline = read_step(run.read_timeline(), step)
    except ValueError as error:
        raise ValueError(f"{run.path}: {error}") from error
    console.print(make_table(f"{run.path}, step {timeline.step}", describe(timeline)))
    picture = run.path / f"timeline_step_{timeline.step}.png"
    try:
        draw_timeline(timeline, picture, title=f"{run.path.name}, step {timeline.step}")
    except (ImportError, OSError) as error:
        # a run on a read-only disk, or a machine without matplotlib, can still be read
        console.print(Text(f"no timeline drawn: {error}"))
        return
    console.print(Text(f"timeline: {picture}"))


def find_run(path: Path) -> RunDirectory:
    """The run itself; in a folder of runs that of `rl`, or the last that has a timeline, as with the curves."""
    inner = [run for run in find_runs(path) if RunDirectory(run).timeline.path.exists()]
    if RunDirectory(path).exists() or not inner:
        return RunDirectory(path)
    return RunDirectory(path / "rl" if path / "rl" in inner else inner[-1])


def describe(timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Rows of the table: the parts of the step, then what went on in those in which something was drawn."""
    yield "step", write_seconds(timeline.seconds)
    for part in timeline.parts:
        yield part.name, write_seconds(part.seconds)
    for drawing in timeline.drawing:
        (part,) = drawing.parts
        for name, text in describe_drawing(drawing):
            yield f"{part.name}, {name}", text


def describe_drawing(timeline: Timeline) -> Iterator[tuple[str, str]]:
    (part,) = timeline.parts
    for name, chunks in timeline.instances.items():
        lost = f", lost after {write_seconds(timeline.losses[name])}" if name in timeline.losses else ""
        yield name, describe_work(measure_work(chunks, part)) + lost
    tail = tail_seconds(chunk.end for chunk in timeline.chunks if chunk.how == "finished")
    yield "tail", f"{write_seconds(tail)} for the last tenth of the requests"
    if timeline.waits:
        yield "grading", describe_grading(measure_grading(timeline.waits))
    yield "groups", describe_groups(timeline)


def describe_work(work: Work) -> str:
    rows = f"{work.rows:.3g} rows on average"
    return f"busy {work.busy:.0%}, {rows}, {work.tokens:,} tokens in {work.chunks:,} chunks"


def describe_grading(grading: Grading) -> str:
    mean, longest = write_seconds(grading.mean), write_seconds(grading.longest)
    return f"{grading.verdicts:,} verdicts, {mean} on average, {longest} at most"


def describe_groups(timeline: Timeline) -> str:
    """describe_groups(…) -> "35 launched, 32 chosen, 1 surplus, 2 cancelled"."""
    counts = [f"{len(timeline.launches):,} launched"]
    for closing in timeline.closings:
        counts.append(f"{len(closing.chosen):,} chosen")
        counts.append(f"{len(closing.surplus):,} surplus")
        counts.append(f"{len(closing.cancelled):,} cancelled")
    return ", ".join(counts)
