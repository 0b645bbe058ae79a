"""`foresail data train-language`: the model behind the curation step `language`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train_language(
    files: Annotated[
        list[Path], typer.Argument(help="id.jsonl.xz, other-slavic.jsonl, none-code.jsonl …: text and src")
    ],
    out: Annotated[Path, typer.Option(help="the model")] = Path("language.npz"),
    without: Annotated[
        list[str] | None, typer.Option(help="a source to hold out and to measure on; more than once")
    ] = None,
    bits: Annotated[int, typer.Option(min=8, max=24, help="2^bits buckets of n-grams")] = 18,
    passes: Annotated[int, typer.Option(min=1)] = 4,
    rate: Annotated[float, typer.Option(min=0.001)] = 6.0,
    examples: Annotated[int, typer.Option(min=1, help="sentences of a class, each pass")] = 40_000,
    seed: Annotated[int, typer.Option()] = 0,
) -> None:
    """Train a language identifier on texts of yours, and measure it on sources it has not seen."""
    from foresail.curate.language.train import Fit, accuracy, hold_out, read_examples, train, write_accuracy

    learned, held_out = hold_out(read_examples(files), without or [])
    model = train(learned, Fit(bits=bits, passes=passes, rate=rate, examples=examples, seed=seed))
    model.save(out)
    print(f'{out}: {out.stat().st_size:,} bytes; in a recipe: name = "language", model = "{out}"')
    if held_out:
        print(
            f"right on sentences of {', '.join(without or [])}: {write_accuracy(accuracy(model, held_out))}"
        )
