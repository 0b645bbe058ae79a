"""Checks of [mtp]: against the rest of the recipe, and against the model's shape."""

from __future__ import annotations

from collections.abc import Iterator

from foresail.recipe.shape.model_shape import ModelShape
from foresail.recipe.tables.parts import Lora, Model, Mtp
from foresail.recipe.tables.router import Router


def mtp_mistakes(
    settings: Mtp | None, model: Model, lora: Lora | None, router: Router | None, *, context: int
) -> Iterator[str]:
    if model.mtp_layers is not None and model.path is None:
        yield "model.mtp_layers is for a checkpoint; fresh weights have model.shape.mtp layers"
    if settings is None:
        return
    if model.shape is not None and not model.shape.mtp:
        yield "[mtp] trains MTP layers, and the model has none; set model.shape.mtp = 1, or remove [mtp]"
    if lora is not None:
        yield "[mtp] does not go with [lora], which has no adapters for MTP layers; remove one of them"
    if context > 1:
        yield "[mtp] needs whole sequences on every rank; set cluster.context = 1, or remove [mtp]"
    if settings.freezes_model:
        yield from alone_mistakes(settings, router)


def alone_mistakes(settings: Mtp, router: Router | None) -> Iterator[str]:
    """Checks for a run that trains MTP layers of a frozen model."""
    for key in ("weight", "final_weight"):
        if getattr(settings, key) == 0:
            yield (
                f'mtp.{key} = 0 leaves nothing to train, because with mtp.train = "{settings.train}" the '
                f"model is frozen; set mtp.{key} above 0"
            )
    if router is not None:
        yield f'[router] trains routers, and with mtp.train = "{settings.train}" they are frozen; remove [router]'


def mtp_refusals(settings: Mtp | None, shape: ModelShape) -> Iterator[str]:
    if settings is None:
        return
    if not shape.mtp:
        yield (
            "[mtp] trains MTP layers, and the model has none; add some with foresail mtp add (or raise "
            "model.mtp_layers), or remove [mtp]"
        )
    elif settings.train == "added" and shape.mtp < 2:
        yield (
            'mtp.train = "added" trains the MTP layers after the first, and the model has one; see '
            "foresail mtp extend"
        )
