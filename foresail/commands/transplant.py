"""`foresail tokenizer transplant`: a checkpoint that adopts another tokenizer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import typer

from foresail.commands.options import Seed


def transplant(
    checkpoint: Annotated[Path, typer.Argument(help="folder of a run, or a Hugging Face directory")],
    tokenizer: Annotated[Path, typer.Argument(help="directory of the new tokenizer")],
    out: Annotated[Path, typer.Argument(help="Hugging Face directory to write")],
    method: Annotated[
        Literal["mean", "omp", "random"],
        typer.Option(help="new tokens: mean of their old pieces, matching pursuit, or random vectors"),
    ] = "mean",
    donor: Annotated[
        Path | None, typer.Option(help="for omp: a checkpoint that has the new tokenizer")
    ] = None,
    text: Annotated[
        list[Path] | None, typer.Option(help="for omp without a donor: files of texts; may be given again")
    ] = None,
    documents: Annotated[int, typer.Option(min=1, help="at most so many of each of these files")] = 20_000,
    atoms: Annotated[int, typer.Option(min=1, help="for omp: shared tokens in a sum")] = 64,
    chat_template: Annotated[
        Literal["auto", "new", "old"],
        typer.Option(help="whose; auto: the new tokenizer's, where it has one"),
    ] = "auto",
    pad_to: Annotated[int, typer.Option(min=1, help="rows of embeddings are a multiple of this")] = 1,
    seed: Seed = 0,
) -> None:
    """Give a checkpoint a new tokenizer: shared tokens keep their vectors, new ones are made of old ones."""
    from foresail.model.transplant.transplant import Making
    from foresail.model.transplant.transplant import transplant as write_transplant
    from foresail.train.checkpoints.export import find_checkpoint

    making = Making(
        method=method,
        donor=None if donor is None else find_checkpoint(donor),
        texts=None if not text else read_some(text, documents),
        count=atoms,
        seed=seed,
    )
    done = write_transplant(
        find_checkpoint(checkpoint), tokenizer, out, making, template=chat_template, pad_to=pad_to
    )
    counts = done.counts
    print(
        f"{out}: {done.rows:,} rows; {counts['copied']:,} tokens copied, {counts['roles']} special ones by their "
        f"role, {counts['new']:,} new ones by {method}"
    )
    if counts["unknown"]:
        print(
            f"{counts['unknown']:,} tokens that the old tokenizer cannot write have the mean of all vectors"
        )
    for note in done.notes:
        print(f"note: {note}")
    print("states of the optimizer are not carried over; train it on: foresail pretrain, or sft")


def read_some(sources: list[Path], documents: int) -> Iterator[str]:
    from itertools import islice

    from foresail.data.long_context.texts import read_texts

    for source in sources:
        yield from islice(read_texts(source), documents)
