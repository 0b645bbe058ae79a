"""`foresail show` and `foresail runs`: reports on runs, from their files alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from foresail.commands.options import RunFolder


def show(
    run: RunFolder,
    timeline: Annotated[bool, typer.Option("--timeline", help="who did what when in a step")] = False,
    samples: Annotated[bool, typer.Option("--samples", help="a right and a wrong response")] = False,
    episode: Annotated[
        str | None, typer.Option(help="PROBLEM.SAMPLE: its turns, with evidence and weight of each")
    ] = None,
    step: Annotated[int | None, typer.Option(help="step to look into; default: the last")] = None,
) -> None:
    """Print a run's summary and redraw its curves, from its files alone; or look into one step."""
    from foresail.runlog.episode import show_episode
    from foresail.runlog.samples import show_samples
    from foresail.runlog.summary import show as show_run
    from foresail.runlog.timeline_report import show_timeline

    if timeline:
        show_timeline(run, step)
    if samples:
        show_samples(run, step)
    if episode is not None:
        show_episode(run, episode, step)
    if timeline or samples or episode is not None:
        return
    if step is not None:
        raise ValueError(f"--step {step} chooses a step to look into; add --timeline, --samples or --episode")
    show_run(run)


def runs(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="a folder of runs to list, or several runs to compare")
    ] = None,
    metric: Annotated[
        list[str] | None, typer.Option(help="metric to compare by, or the end of its name; may be repeated")
    ] = None,
    picture: Annotated[Path | None, typer.Option(help="file for curves of the runs, .png or .pdf")] = None,
) -> None:
    """List the runs of a folder; of several runs show where recipes and metrics differ."""
    from rich.console import Console

    from foresail.runlog.comparison import draw_comparison, metric_table, recipe_table
    from foresail.runlog.run_list import describe_run, find_all, list_table

    places = folders or [Path("runs")]
    found_runs = [run for folder in places for run in find_all(folder)]
    if not found_runs:
        raise ValueError(f"{', '.join(map(str, places))}: no run is there; a run has a recipe.toml")
    # piped, a table keeps its columns instead of folding them at 80 characters
    console = Console(width=None if sys.stdout.isatty() else 200)
    if len(places) == 1 and not metric and picture is None:
        console.print(list_table([describe_run(run) for run in found_runs], places[0]))
        return
    console.print(recipe_table(found_runs), "", metric_table(found_runs, metric or []))
    if picture is not None:
        draw_comparison(found_runs, metric or [], picture)
        print(f"picture: {picture}")
