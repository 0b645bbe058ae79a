"""The reference model of RL's KL term, the same at every start of a run."""

from __future__ import annotations

from foresail.model.decoder import Decoder
from foresail.model.lora import base_of
from foresail.recipe.stages.rl import Rl
from foresail.train.checkpoints.fingerprints import fingerprint_reference
from foresail.train.learner import Learner
from foresail.train.references.frozen import open_frozen
from foresail.train.trainer import Trainer


def open_kl_reference(trainer: Trainer[Rl]) -> Decoder | None:
    """The starting model or another one. With LoRA the starting model is the policy without its pairs."""
    recipe, path = trainer.recipe, trainer.recipe.loss.reference
    if recipe.loss.kl_weight == 0:
        return None
    if recipe.lora is not None and path is None:
        model = base_of(trainer.policy.model)
    else:
        model = open_frozen(trainer, path)
        trainer.progress = fingerprint_reference(trainer.progress, path or recipe.model.path, model)
    trainer.learners["reference"] = Learner(name="reference", model=model)
    return model
