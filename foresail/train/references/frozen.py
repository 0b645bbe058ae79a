"""A model beside the policy that learns nothing: a reference, a teacher."""

from __future__ import annotations

from typing import Any

from foresail.model.decoder import Decoder
from foresail.model.hf import check_vocabulary
from foresail.train.learner import arrangement
from foresail.train.starting_point import open_model
from foresail.train.trainer import Trainer


def open_frozen(trainer: Trainer[Any], path: str | None) -> Decoder:
    """That of a checkpoint, or the starting model; sharded as the policy is, without MTP layers."""
    recipe = trainer.recipe
    other = {} if path is None else {"path": path, "shape": None}
    model = open_model(
        recipe.model.model_copy(update=other).without_mtp(),
        seed=recipe.run.seed,
        device=trainer.device,
        max_length=recipe.max_length,
        arrange=arrangement(None, trainer.world),
    )
    check_vocabulary(model.shape, trainer.tokenizer.vocab_size)
    return model.requires_grad_(False)
