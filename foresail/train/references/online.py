"""The reference of online DPO: the starting model or another one, or the policy as it was some steps ago.

A renewed reference is part of every checkpoint, since no other file holds it.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from foresail.model.device import choose_dtype
from foresail.model.hf import load_model, save_model
from foresail.model.shards import local
from foresail.recipe.shape.hf_config import NO_SPECIAL_IDS
from foresail.recipe.stages.online_dpo import OnlineDpo
from foresail.train.learner import TRAINER, Learner, arrangement
from foresail.train.references.reference import check_same, name_reference, name_weights, open_reference
from foresail.train.trainer import Trainer

FOLDER = f"{TRAINER}/reference"


def open_online_reference(trainer: Trainer[OnlineDpo]) -> None:
    """On every rank, if the loss uses a reference."""
    recipe, start = trainer.recipe, trainer.start
    if not recipe.loss.needs_reference:
        return
    renewed = recipe.reference.renew_every > 0
    if renewed and start is not None:
        trainer.reference = load_model(
            start / FOLDER,
            dtype=choose_dtype(recipe.model.dtype, trainer.device),
            device=trainer.device,
            context=recipe.max_length,
            arrange=arrangement(None, trainer.world),
        ).requires_grad_(False)
    else:
        trainer.reference = open_reference(trainer)
        checksum = name_weights(trainer.reference)
        if not renewed:
            check_same(name_reference(recipe), trainer.progress.reference, checksum)
            trainer.progress = replace(trainer.progress, reference=checksum)
    trainer.learners["reference"] = Learner(name="reference", model=trainer.reference)


@torch.no_grad()
def renew_reference(trainer: Trainer[OnlineDpo]) -> None:
    """Copy the current policy to the reference; each rank copies its own rows."""
    assert trainer.reference is not None
    policy = dict(trainer.policy.model.named_parameters())
    for name, weight in trainer.reference.named_parameters():
        local(weight).copy_(local(policy[name]))


def save_reference(trainer: Trainer[OnlineDpo], checkpoint: Path) -> None:
    assert trainer.reference is not None
    save_model(trainer.reference, checkpoint / FOLDER, special=NO_SPECIAL_IDS, world=trainer.world)
