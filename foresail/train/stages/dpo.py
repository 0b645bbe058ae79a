"""Preference optimisation: the chosen answer becomes more likely, compared with the rejected one and a reference.

foresail dpo recipes/dpo-example.toml
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from foresail.algorithms.preference_losses import preference_loss
from foresail.data.mixtures.reader import Reader
from foresail.data.preferences.mixture import pair_limit
from foresail.recipe.stages.dpo import Dpo
from foresail.records import TrainPair
from foresail.train.auxiliary.expert_load import balance_experts
from foresail.train.auxiliary.mtp import mtp_at
from foresail.train.references.reference import compared
from foresail.train.session import Outcome
from foresail.train.stages.preference_run import Objective, name_update, run_preferences
from foresail.train.trainer import Trainer
from foresail.train.update.split import balance_metrics
from foresail.train.update.split_answers import pack_answer_share
from foresail.train.update.step import token_logprobs, token_loss, train_step

PER_PAIR = ("rewards/", "logps/", "dpo/")  # metrics that are means over pairs; others are over tokens


def run_dpo(recipe: Dpo, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader`: has some of the data already."""
    objective = Objective(
        read=lambda reader: reader.pairs,
        limit=pair_limit,
        check=accept,
        complete=as_they_are,
        texts=texts_of,
        update=update,
        measure=measure_pairs,
    )
    return run_preferences(recipe, objective, resume=resume, reader=reader)


def accept(pairs: Sequence[TrainPair]) -> None:
    """Pairs that teach nothing were left out when they were read."""


def as_they_are(recipe: Any, pairs: Sequence[TrainPair]) -> Sequence[TrainPair]:
    return pairs


def texts_of(pair: TrainPair) -> Iterator[str]:
    return (f"{sequence.ids} {sequence.loss_mask}\n" for sequence in pair.answers)


def update(trainer: Trainer[Dpo], pairs: Sequence[TrainPair], rate: float) -> dict[str, float]:
    """One optimiser update, of which this rank computes its share."""
    recipe = trainer.recipe
    pairs = compared(trainer, pairs)
    batches = [
        *pack_answer_share(pairs, trainer.world, max_tokens=recipe.micro_batch_tokens, device=trainer.device)
    ]
    balance_experts(trainer.policy.model, recipe.router, (trainer.progress.updates + 1) / recipe.steps)
    loss = partial(
        token_loss,
        loss=partial(preference_loss, settings=recipe.loss),
        mtp=mtp_at(recipe.mtp, trainer.progress.step / recipe.steps),
    )
    found = train_step(trainer.policy, batches, loss, learning_rate=rate)
    return name_update(dict(over_pairs(found, pairs))) | balance_metrics([batches], trainer.world)


def over_pairs(found: Mapping[str, float], pairs: Sequence[TrainPair]) -> Iterator[tuple[str, float]]:
    """Sums over pairs, which a step divides by all tokens with a loss, as means over pairs."""
    num_tokens = sum(sum(sequence.loss_mask) for pair in pairs for sequence in pair.answers)
    for name, value in found.items():
        yield name, value * num_tokens / len(pairs) if name.startswith(PER_PAIR) else value


@torch.no_grad()
def measure_pairs(trainer: Trainer[Dpo], pairs: Sequence[TrainPair]) -> dict[str, float]:
    """Loss, margin, and how often the chosen answer has the higher reward; ranks compute a share each."""
    recipe, data = trainer.recipe, trainer.world.data
    sums: dict[str, torch.Tensor] = {}
    for batch in pack_answer_share(
        compared(trainer, pairs), trainer.world, max_tokens=recipe.micro_batch_tokens, device=trainer.device
    ):
        logprobs_M, _ = token_logprobs(trainer.policy.model, batch)
        loss, terms = preference_loss(logprobs_M, batch, recipe.loss)
        for name, term in {"loss": loss, **terms}.items():
            sums[name] = sums.get(name, torch.zeros_like(term)) + term
    totals = {name: float(data.sum(value)) for name, value in sums.items()}
    return {
        "val/loss/{}": totals["loss"],
        "val-core/{}/acc/pairs": totals["rewards/accuracies"] / len(pairs),
        "val/rewards/margins/{}": totals["rewards/margins"] / len(pairs),
    }
