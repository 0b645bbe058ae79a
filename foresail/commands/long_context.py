"""`foresail long-context`: a checkpoint's recall by length and depth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from foresail.commands.interruption import explaining_interrupt
from foresail.commands.options import Device, Seed


def long_context(
    checkpoint: Annotated[Path, typer.Argument(help="folder of a run, or a Hugging Face directory")],
    lengths: Annotated[
        str, typer.Option(help="context lengths in tokens, with commas")
    ] = "512,1024,2048,4096",
    tasks: Annotated[
        str,
        typer.Option(help="niah_single, niah_multikey, niah_multivalue, niah_multiquery, vt, cwe, fwe, …"),
    ] = "niah_single",
    depths: Annotated[int, typer.Option(min=1, help="places of the needle, from beginning to end")] = 10,
    per_cell: Annotated[int, typer.Option(min=1, help="prompts for each task, length and depth")] = 10,
    filler: Annotated[
        str | None, typer.Option(help="JSONL or text file to hide needles in; default: made sentences")
    ] = None,
    chat: Annotated[
        bool, typer.Option("--chat", help="prompts under the chat template, not as plain text")
    ] = False,
    max_new_tokens: Annotated[
        int | None, typer.Option(min=1, help="room for an answer; default: what a right one takes, and some")
    ] = None,
    seed: Seed = 0,
    device: Device = "auto",
    output: Annotated[Path | None, typer.Option(help="folder for answers, figures and heat-map")] = None,
) -> None:
    """Needle in a haystack, RULER's CWE, FWE and VT, and line retrieval: recall by length and depth."""
    from rich.console import Console

    from foresail.data.long_context.tasks import check_task
    from foresail.evaluation.checkpoint import default_output, make_folder
    from foresail.evaluation.long_context import ask
    from foresail.evaluation.long_context_plot import plot_answers
    from foresail.evaluation.long_context_results import PICTURE, show_answers, write_results
    from foresail.evaluation.target import find_target
    from foresail.recipe.tables.long_context import LongContext
    from foresail.rollout.checkpoint import open_checkpoint
    from foresail.runlog.canvas import save_figure

    names = [part.strip() for part in tasks.split(",")]
    for name in names:
        check_task(name)
    settings = LongContext.model_validate(
        {
            "lengths": split_numbers(lengths),
            "tasks": names,
            "depths": depths,
            "per_cell": per_cell,
            "filler": filler,
        }
    )
    target = find_target(checkpoint)
    folder = output or default_output("long-context", target.checkpoint, "long-context")
    with explaining_interrupt("nothing of it is kept"):
        model, tokenizer = open_checkpoint(target.checkpoint, device=device, max_length=max(settings.lengths))
        make_folder(folder)
        answers = ask(model, tokenizer, settings, seed=seed, chat=chat, max_new_tokens=max_new_tokens)
    recorded = {"checkpoint": str(target.checkpoint), "seed": seed, "settings": settings.model_dump()}
    write_results(folder, answers, recorded)
    Console().print(show_answers(answers))
    save_figure(plot_answers(answers, title=str(checkpoint)), folder / PICTURE)
    print(f"answers, figures and {PICTURE}: {folder}")


def split_numbers(text: str) -> tuple[int, ...]:
    """split_numbers("512, 1024") -> (512, 1024)."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) for part in parts):
        raise ValueError(f"--lengths {text} are not whole numbers with commas between; try 512,1024")
    return tuple(map(int, parts))
