"""`foresail data train-classifier`: a quality and domain classifier from labelled texts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def train_classifier(
    labels: Annotated[
        Path, typer.Argument(help='rows {"text": …, "labels": {"fluency": 4, "domain": "maths"}}')
    ],
    out: Annotated[Path, typer.Argument(help="file of the classifier, such as quality.npz")],
    label: Annotated[
        list[str] | None, typer.Option(help="a column that holds a label, instead of the column labels")
    ] = None,
    epochs: Annotated[int, typer.Option(min=1)] = 5,
    held_out: Annotated[float, typer.Option(help="share of the rows that only measure")] = 0.1,
    bits: Annotated[int, typer.Option(min=10, max=24, help="2**bits features")] = 18,
    seed: Annotated[int, typer.Option(min=0)] = 0,
) -> None:
    """A linear classifier over word and character n-grams; prints how well it does on rows held out."""
    from tempfile import TemporaryDirectory

    from foresail.curate.quality.figures import describe_figures
    from foresail.curate.quality.labels import read_labels
    from foresail.curate.quality.training import Training
    from foresail.curate.quality.training import train_classifier as train
    from foresail.recipe.reading.load import check_table

    table = {"epochs": epochs, "held_out": held_out, "bits": bits, "seed": seed}
    settings = check_table("train-classifier", table, {}, [], Training)
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=".tmp-features-", dir=out.parent) as scratch:
        model, figures = train(read_labels(labels, label or ()), Path(scratch), settings)
    model.save(out)
    print(*describe_figures(figures), sep="\n")
    print(f"{out}: {out.stat().st_size / 2**20:.1f} MiB")
    print(f'in a curation recipe: name = "classify", model = "{out}"')
