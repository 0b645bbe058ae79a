"""`foresail merge`: the mean of checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge(
    checkpoints: Annotated[
        list[Path],
        typer.Argument(help="two or more runs (best step, else newest) or Hugging Face directories"),
    ],
    out: Annotated[Path, typer.Option(help="Hugging Face directory to write")],
    weights: Annotated[
        str | None, typer.Option(help="one number for each, such as 1,1,2; default: equal ones")
    ] = None,
) -> None:
    """The mean, or weighted mean, of checkpoints with one shape: reward models of several seeds, say."""
    from foresail.model.merge import merge as merge_checkpoints
    from foresail.train.checkpoints.export import find_checkpoint

    sources = [find_checkpoint(checkpoint) for checkpoint in checkpoints]
    for note in merge_checkpoints(sources, out, weights=read_weights(weights)):
        print(f"note: {note}")
    print(f"{out}: the mean of {', '.join(map(str, sources))}")


def read_weights(text: str | None) -> list[float] | None:
    """read_weights("1,1,2") -> [1.0, 1.0, 2.0]."""
    try:
        return None if text is None else [float(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(f"--weights {text}: write numbers with commas between them, such as 1,1,2") from None
