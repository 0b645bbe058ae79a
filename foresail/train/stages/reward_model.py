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
from foresail.model.determinism import deterministic
from foresail.model.output import Output
from foresail.model.readouts import scores_at
from foresail.recipe.stages.reward_model import RewardModel
from foresail.recipe.tables.sources import HeldOutPreferences
from foresail.records import PackedBatch, TrainPair
from foresail.train.auxiliary.expert_load import balance_experts
from foresail.train.checkpoints.fingerprints import fingerprint_data
from foresail.train.optim.schedule import learning_rate
from foresail.train.ranks.launch import open_ranks, placed
from foresail.train.session import Outcome, Session
from foresail.train.stages.preference_supply import next_entries, report_left_out
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer
from foresail.train.update.split import balance_metrics
from foresail.train.update.split_answers import pack_answer_share
from foresail.train.update.step import BatchLoss, prefixed, run_packed, train_step


def run_reward_model(recipe: RewardModel, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader`: has some of the data already."""
    with (
        deterministic(recipe.run.deterministic),
        placed(recipe),
        open_ranks(recipe.cluster, recipe.run) as world,
        Session(recipe, resume=resume, world=world) as session,
    ):
        session.display.begin("reading the data")
        reader = reader or Reader(session.tokenizer)
        pairs = read_pairs(session, recipe.data, reader)
        held_out = {source.label: read_pairs(session, (source,), reader).entries for source in recipe.eval}
        texts = (f"{pair.chosen.ids} {pair.rejected.ids} {pair.margin}\n" for pair in pairs.entries)
        named_sources = " and ".join(source.source for source in recipe.data)
        session.progress = fingerprint_data(session.progress, f"data {named_sources}", "pairs", texts)
        supply = open_supply(pairs.datasets, [None] * len(pairs.datasets), recipe.data)
        for step in session.steps():
            watch = Stopwatch()
            if (next_step := next_entries(session, supply)) is None:
                continue
            drawn, progress = next_step
            chosen = [pairs.entries[index] for index in drawn]
            rate = learning_rate(step, recipe.steps, recipe.optimizer)
            session.display.begin("update", span=(0.0, 1.0))
            with watch("update"):
                found = session.on_all_ranks(update, chosen, rate)
            seen = sum(len(pair.chosen.ids) + len(pair.rejected.ids) for pair in chosen)
            metrics = {
                "train/loss": found.pop("loss"),
                **prefixed("actor", spread_metrics(found)),
                "train/lr": rate,
            }
            metrics |= {"train/tokens": seen, "perf/throughput": seen / watch.seconds["update"]}
            if recipe.eval_every and (step % recipe.eval_every == 0 or step == recipe.steps):
                session.display.begin("held-out pairs")
                with watch("testing"):
                    metrics |= measure(session, held_out)
            session.end_step(progress, metrics | watch.metrics())
    return session.outcome


def read_pairs(
    session: Session[RewardModel], sources: Sequence[HeldOutPreferences], reader: Reader
) -> PreferenceMixture[TrainPair]:
    """Each answer ends where it is scored."""
    found = mix_preferences(sources, reader.pairs, pair_limit(session.recipe.max_length))
    report_left_out(session, found)
    return replace(found, entries=[end_with_answers(pair) for pair in found.entries])


def update(trainer: Trainer[RewardModel], pairs: Sequence[TrainPair], rate: float) -> dict[str, float]:
    """One optimiser update, of which this rank computes its share."""
    recipe, batches = trainer.recipe, own_batches(trainer, pairs)
    balance_experts(trainer.policy.model, recipe.router, (trainer.progress.updates + 1) / recipe.steps)
    loss = partial(pair_loss, margin=recipe.margin, center=recipe.center)
    found = train_step(trainer.policy, batches, loss, learning_rate=rate)
    return found | balance_metrics([batches], trainer.world)


def pair_loss(model: Decoder, batch: PackedBatch, *, margin: float, center: float) -> BatchLoss:
    assert batch.answers is not None
    scores_M, *side = score_ends(model, batch)
    found = bradley_terry_loss(scores_M.view(-1, 2), batch.answers, margin=margin, center=center)
    return BatchLoss(*found, *side)


def own_batches(trainer: Trainer[RewardModel], pairs: Sequence[TrainPair]) -> list[PackedBatch]:
    packed = pack_answer_share(
        pairs, trainer.world, max_tokens=trainer.recipe.micro_batch_tokens, device=trainer.device
    )
    return [read_at_ends(batch) for batch in packed]


def score_ends(model: Decoder, batch: PackedBatch) -> Output[torch.Tensor]:
    return run_packed(model, batch, scores_at(batch.sources_M))


def spread_metrics(found: dict[str, float]) -> dict[str, float]:
    """The mean square of all scores told as what it is for: their spread."""
    square, mean = found.pop("pairs/score_square"), found["pairs/score"]
    return found | {"pairs/score_std": max(0.0, square - mean * mean) ** 0.5}


def measure(session: Session[RewardModel], held_out: Mapping[str, Sequence[TrainPair]]) -> dict[str, float]:
    """{"val-core/hh/acc/pairs": 0.71, "val-aux/hh/ece": 0.04, …}"""
    found: dict[str, float] = {}
    for name, pairs in held_out.items():
        figures = pair_figures(session.on_all_ranks(score_leads, pairs))
        low, high = figures.interval
        found[f"val-core/{name}/acc/pairs"] = figures.accuracy
        others = {"acc_low": low, "acc_high": high, "ece": figures.ece, "loss": figures.loss}
        found |= {f"val-aux/{name}/{key}": value for key, value in others.items()}
    return found


@torch.no_grad()
def score_leads(trainer: Trainer[RewardModel], pairs: Sequence[TrainPair]) -> list[float]:
    """By how much every chosen answer leads, all ranks' together, in no order that means anything."""
    leads: list[float] = []
    for batch in own_batches(trainer, pairs):
        scores_P2 = score_ends(trainer.policy.model, batch).value.view(-1, 2)
        leads += (scores_P2[:, 0] - scores_P2[:, 1]).tolist()
    return [lead for of_rank in trainer.world.data.all_gather(leads) for lead in of_rank]
