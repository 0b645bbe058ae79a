"""The model that a loss pulls towards, or measures against: frozen, and the same at every start of a run."""

from __future__ import annotations

from foresail.model.decoder import Decoder
from foresail.model.hf import check_vocabulary
from foresail.model.lora import base_of
from foresail.recipe.rl import Rl
from foresail.train.fingerprints import same_reference
from foresail.train.learner import Learner, arrangement
from foresail.train.starting_point import open_model
from foresail.train.trainer import Trainer


def open_reference(trainer: Trainer[Rl]) -> Decoder | None:
    """What the loss pulls towards: the starting model, which with LoRA is still there, or another one."""
    recipe = trainer.recipe
    if recipe.loss.kl_weight == 0:
        return None
    path, start = recipe.loss.reference, recipe.model
    if path is not None:
        start = start.model_copy(update={"path": path, "shape": None})
    if recipe.lora is not None and path is None:
        model = base_of(trainer.policy.model)
    else:
        model = open_model(
            start.without_mtp(),
            seed=recipe.run.seed,
            device=trainer.device,
            max_length=recipe.max_length,
            arrange=arrangement(None, trainer.world),
        )
        check_vocabulary(model.shape, trainer.tokenizer.vocab_size)
        trainer.progress = same_reference(
            trainer.progress, path or recipe.model.path, model.requires_grad_(False)
        )
    trainer.learners["reference"] = Learner(name="reference", model=model)
    return model
