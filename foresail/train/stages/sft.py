"""Supervised fine-tuning: next-token loss on the assistant's words, packed without padding; in stages, or in one.

foresail sft recipes/sft-example.toml
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.batch_losses import sft_loss
from foresail.data.mixtures.mixture import describe_chats
from foresail.data.mixtures.reader import Reader
from foresail.data.selection.launch_order import WHOLE
from foresail.data.selection.supply import Supply, draw
from foresail.model.determinism import deterministic
from foresail.recipe.stages.sft import Sft
from foresail.records import TrainSequence
from foresail.train.auxiliary.expert_load import balance_experts
from foresail.train.auxiliary.mtp import mtp_at
from foresail.train.checkpoints.checkpoint import Progress
from foresail.train.checkpoints.fingerprints import fingerprint_data
from foresail.train.optim.schedule import learning_rate
from foresail.train.ranks.launch import open_ranks, placed
from foresail.train.session import Outcome, Session
from foresail.train.stages.sft_stages import SftStages, StageData, mean_losses
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer
from foresail.train.update.chat_loss import chat_loss
from foresail.train.update.neftune import noisy_loss
from foresail.train.update.split import balance_metrics, pack_share
from foresail.train.update.step import LossOfBatch, prefixed, token_loss, train_step


def run_sft(recipe: Sft, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader`: has some of the data already."""
    with (
        deterministic(recipe.run.deterministic),
        placed(recipe),
        open_ranks(recipe.cluster, recipe.run) as world,
        Session(recipe, resume=resume, world=world) as session,
    ):
        session.display.begin("reading the data")
        stages = open_stages(session, reader or Reader(session.tokenizer))
        data, supply = begin_stage(session, stages)
        for step in session.steps():
            watch = Stopwatch()
            progress, phase = session.progress, recipe.phases[session.progress.stage]
            seed = stages.seed(progress.stage)
            own_step = step - progress.began
            drawn, places = draw_next(supply, phase.batch_size, progress, seed)
            if own_step > phase.steps or len(drawn) < phase.batch_size:
                if leave_stage(session, early=own_step <= phase.steps):
                    data, supply = begin_stage(session, stages)
                continue
            sequences = [data.chats.entries[index] for index in drawn]
            rate = learning_rate(own_step, phase.steps, phase.optimizer)
            session.display.begin("update", span=(0.0, 1.0))
            with watch("update"):
                found = session.on_all_ranks(update, sequences, rate)
            seen = sum(len(sequence.ids) for sequence in sequences)
            metrics = {"train/loss": found.pop("loss"), **prefixed("actor", found), "train/lr": rate}
            metrics |= {"train/tokens": seen, "perf/throughput": seen / watch.seconds["update"]}
            metrics |= source_metrics(data, drawn)
            if recipe.stages:
                metrics["train/stage"] = progress.stage + 1
            progress = replace(
                progress,
                step=step,
                updates=step,
                position=progress.position + phase.batch_size,
                places={name: place for name, place in places.items() if name != WHOLE},
            )
            if recipe.measures and is_measured(recipe, progress, supply, seed):
                session.display.begin("held-out loss")
                with watch("held_out"):
                    metrics |= session.on_all_ranks(chat_loss, stages.held_out)
            session.end_step(progress, metrics | watch.metrics())
    return session.outcome


# Where the run stands.


def open_stages(session: Session[Sft], reader: Reader) -> SftStages:
    """All data of all stages, which must be what the run began with; what was left out of it is told."""
    recipe = session.recipe
    stages = SftStages(recipe, reader)
    for told in reader.notes.values():
        session.display.note(told)
    for chats, phase in zip(stages.own, recipe.phases, strict=True):
        for line in describe_chats(chats, phase.max_length):
            session.display.note(line, style="yellow")
    named_sources = " and ".join(dict.fromkeys(log.source for _, log in recipe.logs()))
    session.progress = fingerprint_data(
        session.progress, f"data {named_sources}", "conversations", stages.texts()
    )
    stages.restore(session.start)
    session.also_save.append(stages.save)
    return stages


def begin_stage(session: Session[Sft], stages: SftStages) -> tuple[StageData, Supply]:
    """At its first step, or where a run goes on inside it."""
    number, recipe = session.progress.stage, session.recipe
    if stages.asks_model(number):
        session.display.begin("finding the best conversations")
        stages.choose(number, session.on_all_ranks(mean_losses, stages.candidates(number)))
    if recipe.stages and session.progress.step == session.progress.began:
        kept = (
            ""
            if number not in stages.chosen
            else f", with {len(stages.chosen[number]):,} of an earlier stage"
        )
        session.display.note(f"{recipe.stage_label(number)} begins{kept}")
    data = stages.data(number)
    return data, data.supply()


def leave_stage(session: Session[Sft], *, early: bool) -> bool:
    """Whether another comes. A stage ends early where the epochs of its sources do."""
    progress, recipe = session.progress, session.recipe
    goes_on = progress.stage + 1 < len(recipe.phases)
    if early:
        what = recipe.stage_label(progress.stage) if goes_on else "the run"
        session.display.note(f"data.epochs leaves less than step {progress.step + 1} needs: {what} ends here")
    if goes_on:
        session.progress = replace(
            progress, stage=progress.stage + 1, began=progress.step, position=0, places={}
        )
    else:
        session.finish()
    return goes_on


def draw_next(supply: Supply, count: int, progress: Progress, seed: int) -> tuple[list[int], dict[str, int]]:
    strata = supply.strata(None, position=progress.position, places=progress.places)
    return draw(strata, count, seed=seed, position=progress.position)


def is_measured(recipe: Sft, progress: Progress, supply: Supply, seed: int) -> bool:
    """Now and then, and at the end of every stage, where its epochs may be what ends it."""
    phase = recipe.phases[progress.stage]
    if recipe.eval_every and progress.step % recipe.eval_every == 0:
        return True
    if progress.step - progress.began == phase.steps or progress.step == recipe.steps:
        return True
    return len(draw_next(supply, phase.batch_size, progress, seed)[0]) < phase.batch_size


# On every rank.


def update(trainer: Trainer[Sft], sequences: Sequence[TrainSequence], rate: float) -> dict[str, float]:
    """One optimiser update, of which this rank computes its share."""
    recipe, num_tokens = trainer.recipe, [sum(sequence.loss_mask) for sequence in sequences]
    batches = [
        *pack_share(
            sequences,
            token_weights(num_tokens, "token-mean", recipe.max_length),
            trainer.world,
            max_tokens=recipe.micro_batch_tokens,
            device=trainer.device,
        )
    ]
    balance_experts(trainer.policy.model, recipe.router, (trainer.progress.updates + 1) / recipe.steps)
    loss: LossOfBatch = partial(
        token_loss, loss=sft_loss, mtp=mtp_at(recipe.mtp, trainer.progress.step / recipe.steps)
    )
    if recipe.neftune_alpha is not None:
        loss = partial(
            noisy_loss,
            loss=loss,
            alpha=recipe.neftune_alpha,
            seed=recipe.run.seed,
            step=trainer.progress.step + 1,
        )
    found = train_step(trainer.policy, batches, loss, learning_rate=rate)
    return found | balance_metrics([batches], trainer.world)


# What is logged.


def source_metrics(data: StageData, drawn: Sequence[int]) -> dict[str, float]:
    """Tokens of each source in the update, where there are several; and how many conversations were left out."""
    chats = data.chats
    counted = {
        "data/dropped": chats.dropped,
        "data/split": chats.split,
        "data/dropped_turns": chats.lost_turns,
        "data/without_loss": chats.without_loss,
    }
    found: dict[str, float] = {name: sum(counts.values()) for name, counts in counted.items() if counts}
    if len(data.sources) > 1:
        for source in data.sources:
            of_source = [index for index in drawn if chats.datasets[index] == source.label]
            found[f"train/tokens/{source.label}"] = sum(len(chats.entries[i].ids) for i in of_source)
    return found
