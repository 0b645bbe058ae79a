"""Prints and plots the timeline of a step: `foresail show RUN --timeline`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

from foresail.runlog.canvas import save_figure
from foresail.runlog.summary import find_run, make_table
from foresail.runlog.timeline import Timeline, read_step
from foresail.runlog.timeline_figures import measure_grading, measure_work, tail_seconds, write_seconds
from foresail.runlog.timeline_plot import plot_timeline


def show_timeline(path: Path, step: int | None = None, console: Console | None = None) -> None:
    """Print and plot the timeline of one step, by default the last."""
    run, console = find_run(path), console or Console()
    try:
        timeline = read_step(run.read_timeline(), step)
    except ValueError as error:
        raise ValueError(f"{run.path}: {error}") from error
    console.print(make_table(f"{run.path}, step {timeline.step}", describe(timeline)))
    picture = run.path / f"timeline_step_{timeline.step}.png"
    try:
        save_figure(plot_timeline(timeline, f"{run.path.name}, step {timeline.step}"), picture)
    except (ImportError, OSError) as error:
        # without a plot on a read-only disk or without matplotlib
        console.print(Text(f"no timeline drawn: {error}"))
        return
    console.print(Text(f"timeline: {picture}"))


def describe(timeline: Timeline) -> Iterator[tuple[str, str]]:
    """Rows of the table: the parts of the step, then details of parts with generation."""
    yield "step", write_seconds(timeline.seconds)
    for part in timeline.parts:
        yield part.name, write_seconds(part.seconds)
    for generation in timeline.generating:
        (part,) = generation.parts
        for name, text in describe_generation(generation):
            yield f"{part.name}, {name}", text


def describe_generation(timeline: Timeline) -> Iterator[tuple[str, str]]:
    (part,) = timeline.parts
    for name, chunks in timeline.instances.items():
        work = measure_work(chunks, part)
        lost = f", lost after {write_seconds(timeline.losses[name])}" if name in timeline.losses else ""
        rows = f"busy {work.busy:.0%}, {work.rows:.3g} rows on average"
        yield name, f"{rows}, {work.tokens:,} tokens in {work.chunks:,} chunks{lost}"
    tail = tail_seconds(chunk.end for chunk in timeline.chunks if chunk.how == "finished")
    yield "tail", f"{write_seconds(tail)} for the last tenth of the requests"
    if timeline.waits:
        grading = measure_grading(timeline.waits)
        mean, longest = write_seconds(grading.mean), write_seconds(grading.longest)
        yield "grading", f"{grading.verdicts:,} verdicts, {mean} on average, {longest} at most"
    yield "groups", describe_groups(timeline)


def describe_groups(timeline: Timeline) -> str:
    """describe_groups(…) -> "35 launched, 32 chosen, 1 surplus, 2 cancelled"."""
    counts = [f"{len(timeline.launches):,} launched"]
    for closing in timeline.closings:
        kinds = {"chosen": closing.chosen, "surplus": closing.surplus, "cancelled": closing.cancelled}
        counts += [f"{len(groups):,} {kind}" for kind, groups in kinds.items()]
    return ", ".join(counts)
