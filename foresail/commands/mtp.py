"""`foresail mtp …`: more MTP layers for a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from foresail.commands.options import Seed

if TYPE_CHECKING:
    from foresail.recipe.shape.model_shape import ModelShape

mtp_app = typer.Typer(help="Give a checkpoint MTP layers, or more of them.", no_args_is_help=True)

Checkpoint = Annotated[Path, typer.Argument(help="folder of a run, or a Hugging Face directory")]
Out = Annotated[Path, typer.Option(help="Hugging Face directory to write")]


@mtp_app.command()
def extend(
    checkpoint: Checkpoint,
    out: Out,
    layers: Annotated[int, typer.Option(min=2, help="MTP layers it shall have")] = 3,
) -> None:
    """Copy the first MTP layer behind the last; then tune the copies with mtp.train = "added"."""
    from foresail.train.checkpoints.extend_mtp import extend as extend_checkpoint

    print_result(out, extend_checkpoint(checkpoint, out, layers=layers))


@mtp_app.command()
def add(
    checkpoint: Checkpoint,
    out: Out,
    layers: Annotated[int, typer.Option(min=1, help="MTP layers it shall have")] = 1,
    seed: Seed = 0,
) -> None:
    """Add fresh MTP layers to a model without; then train them with mtp.train = "mtp"."""
    from foresail.train.checkpoints.extend_mtp import add as add_layers

    print_result(out, add_layers(checkpoint, out, layers=layers, seed=seed))


def print_result(out: Path, shape: ModelShape) -> None:
    print(f"{out}: {shape.mtp} MTP layers, {shape.num_parameters / 1e6:.1f} M parameters in all")
