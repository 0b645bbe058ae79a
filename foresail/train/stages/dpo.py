"""Preference optimisation: the chosen answer becomes more likely, compared with the rejected one and a reference.

foresail dpo recipes/dpo-example.toml
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from foresail.algorithms.preference_losses import preference_loss
from foresail.data.mixtures.reader import Reader
from foresail.data.preferences.mixture import pair_limit
from foresail.recipe.stages.dpo import Dpo
from foresail.records import TrainPair
from foresail.train.references.reference import compared
from foresail.train.session import Outcome
from foresail.train.stages.preference_run import Objective, learn_preferences, run_preferences
from foresail.train.trainer import Trainer
from foresail.train.update.held_out import sum_loss
from foresail.train.update.split_answers import answer_batches

PER_PAIR = ("rewards/", "logps/", "dpo/")  # metrics that are means over pairs; others are over tokens


def run_dpo(recipe: Dpo, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader` may have read the data already."""
    objective = Objective(
        read=lambda reader: reader.pairs, limit=pair_limit, texts=texts_of, update=update, measure=measure
    )
    return run_preferences(recipe, objective, resume=resume, reader=reader)


def texts_of(pair: TrainPair) -> Iterator[str]:
    return (f"{sequence.ids} {sequence.loss_mask}\n" for sequence in pair.answers)


def update(trainer: Trainer[Dpo], pairs: Sequence[TrainPair], rate: float) -> dict[str, float]:
    loss = partial(preference_loss, settings=trainer.recipe.loss)
    return over_pairs(learn_preferences(trainer, compared(trainer, pairs), loss, rate), pairs)


def over_pairs(metrics: Mapping[str, float], pairs: Sequence[TrainPair]) -> dict[str, float]:
    """Sums over pairs, which a step divides by all tokens with a loss, as means over pairs."""
    num_tokens = sum(sum(sequence.loss_mask) for pair in pairs for sequence in pair.answers)
    return {
        name: value * num_tokens / len(pairs) if name.startswith(PER_PAIR) else value
        for name, value in metrics.items()
    }


def measure(trainer: Trainer[Dpo], pairs: Sequence[TrainPair]) -> dict[str, float]:
    """Loss, margin, and how often the chosen answer has the higher reward; ranks compute a share each."""
    loss = partial(preference_loss, settings=trainer.recipe.loss)
    sums = sum_loss(trainer, answer_batches(trainer, compared(trainer, pairs)), loss)
    return {
        "val/loss/{}": sums["loss"],
        "val-core/{}/acc/pairs": sums["rewards/accuracies"] / len(pairs),
        "val/rewards/margins/{}": sums["rewards/margins"] / len(pairs),
    }
