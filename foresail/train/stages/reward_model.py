"""A reward model from preference pairs: Bradley–Terry, packed with the prompt once before both answers.

foresail reward-model recipes/reward-model-example.toml
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import torch

from foresail.algorithms.bradley_terry import bradley_terry_loss
from foresail.data.mixtures.reader import Reader
from foresail.data.preferences.mixture import PreferenceMixture, mix_preferences, pair_limit
from foresail.data.preferences.scored_pairs import end_with_answers, read_at_ends
from foresail.data.selection.supply import open_supply
from foresail.evaluation.pair_figures import pair_figures
from foresail.model.decoder import Decoder
from foresail.model.output import Output
from foresail.model.packed import run_packed
from foresail.model.readouts import scores_at
from foresail.recipe.stages.reward_model import RewardModel
from foresail.recipe.tables.sources import HeldOutPreferences
from foresail.records import PackedBatch, TrainPair
from foresail.train.checkpoints.fingerprints import fingerprint_data
from foresail.train.optim.schedule import learning_rate
from foresail.train.session import Outcome, Session
from foresail.train.stages.preference_supply import next_entries, report_left_out
from foresail.train.stages.supervised import StepData, learn, run_supervised
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer
from foresail.train.update.split_answers import answer_batches
from foresail.train.update.step import BatchLoss


def run_reward_model(recipe: RewardModel, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader` may have read the data already."""

    def open_data(session: Session[RewardModel]) -> ScoredPairs:
        return ScoredPairs(session, reader or Reader(session.tokenizer))

    return run_supervised(recipe, open_data, update, resume=resume)


class ScoredPairs:
    """Training pairs and held-out pairs."""

    def __init__(self, session: Session[RewardModel], reader: Reader) -> None:
        self.session, recipe = session, session.recipe
        self.pairs = read_pairs(session, recipe.data, reader)
        self.held_out = {
            source.label: read_pairs(session, (source,), reader).entries for source in recipe.eval
        }
        texts = (f"{pair.chosen.ids} {pair.rejected.ids} {pair.margin}\n" for pair in self.pairs.entries)
        named_sources = " and ".join(source.source for source in recipe.data)
        session.progress = fingerprint_data(session.progress, f"data {named_sources}", "pairs", texts)
        self.supply = open_supply(self.pairs.datasets, [None] * len(self.pairs.datasets), recipe.data)

    def draw(self, step: int) -> StepData | None:
        recipe = self.session.recipe
        if (drawn := next_entries(self.session, self.supply)) is None:
            return None
        numbers, progress = drawn
        pairs = [self.pairs.entries[number] for number in numbers]
        return StepData(
            arguments=(pairs,),
            rate=learning_rate(step, recipe.steps, recipe.optimizer),
            tokens=sum(len(pair.chosen.ids) + len(pair.rejected.ids) for pair in pairs),
            progress=progress,
        )

    def measure(self, data: StepData, metrics: Mapping[str, float], watch: Stopwatch) -> dict[str, float]:
        step, recipe = data.progress.step, self.session.recipe
        if not recipe.eval_every or (step % recipe.eval_every and step != recipe.steps):
            return {}
        self.session.display.begin("held-out pairs")
        with watch("testing"):
            return measure(self.session, self.held_out)


def read_pairs(
    session: Session[RewardModel], sources: Sequence[HeldOutPreferences], reader: Reader
) -> PreferenceMixture[TrainPair]:
    """Each answer ends where it is scored."""
    mixture = mix_preferences(sources, reader.pairs, pair_limit(session.recipe.max_length))
    report_left_out(session, mixture)
    return replace(mixture, entries=[end_with_answers(pair) for pair in mixture.entries])


def update(trainer: Trainer[RewardModel], pairs: Sequence[TrainPair], rate: float) -> dict[str, float]:
    """One optimiser update, of which this rank computes its share."""
    recipe, batches = trainer.recipe, own_batches(trainer, pairs)
    loss = partial(pair_loss, margin=recipe.margin, center=recipe.center)
    done = (trainer.progress.updates + 1) / recipe.steps
    return spread_metrics(learn(trainer, batches, loss, rate=rate, done=done))


def pair_loss(model: Decoder, batch: PackedBatch, *, margin: float, center: float) -> BatchLoss:
    assert batch.answers is not None
    scores_M, *side = score_ends(model, batch)
    loss, terms = bradley_terry_loss(scores_M.view(-1, 2), batch.answers, margin=margin, center=center)
    return BatchLoss(loss, terms, *side)


def own_batches(trainer: Trainer[RewardModel], pairs: Sequence[TrainPair]) -> list[PackedBatch]:
    return [read_at_ends(batch) for batch in answer_batches(trainer, pairs)]


def score_ends(model: Decoder, batch: PackedBatch) -> Output[torch.Tensor]:
    return run_packed(model, batch, scores_at(batch.sources_M))


def spread_metrics(metrics: dict[str, float]) -> dict[str, float]:
    """The standard deviation of the scores, in the place of their mean square."""
    square, mean = metrics.pop("pairs/score_square"), metrics["pairs/score"]
    return metrics | {"pairs/score_std": max(0.0, square - mean * mean) ** 0.5}


def measure(session: Session[RewardModel], held_out: Mapping[str, Sequence[TrainPair]]) -> dict[str, float]:
    """{"val-core/hh/acc/pairs": 0.71, "val-aux/hh/ece": 0.04, …}"""
    metrics: dict[str, float] = {}
    for name, pairs in held_out.items():
        figures = pair_figures(session.on_all_ranks(score_leads, pairs))
        low, high = figures.interval
        metrics[f"val-core/{name}/acc/pairs"] = figures.accuracy
        others = {"acc_low": low, "acc_high": high, "ece": figures.ece, "loss": figures.loss}
        metrics |= {f"val-aux/{name}/{key}": value for key, value in others.items()}
    return metrics


@torch.no_grad()
def score_leads(trainer: Trainer[RewardModel], pairs: Sequence[TrainPair]) -> list[float]:
    """Score differences of chosen and rejected answers, of all ranks, in no particular order."""
    leads: list[float] = []
    for batch in own_batches(trainer, pairs):
        scores_P2 = score_ends(trainer.policy.model, batch).value.view(-1, 2)
        leads += (scores_P2[:, 0] - scores_P2[:, 1]).tolist()
    return [lead for of_rank in trainer.world.data.all_gather(leads) for lead in of_rank]
