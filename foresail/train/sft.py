"""Supervised fine-tuning: next-token loss on the assistant's words, packed without padding.

foresail sft recipes/sft-example.toml
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.batch_losses import sft_loss
from foresail.data.mixture import Mixture, describe_dropped, mix_conversations
from foresail.data.reader import Reader
from foresail.data.selection.lineup import WHOLE
from foresail.data.selection.supply import draw, open_supply
from foresail.model.determinism import deterministic
from foresail.recipe.sft import Sft
from foresail.recipe.sources import Conversations
from foresail.records import TrainSequence
from foresail.train.dealing import describe_shares, pack_share
from foresail.train.expert_load import balance_experts
from foresail.train.fingerprints import same_data
from foresail.train.launch import open_ranks, placed
from foresail.train.mtp import mtp_at
from foresail.train.schedule import learning_rate
from foresail.train.session import Outcome, Session
from foresail.train.step import named, token_loss, train_step
from foresail.train.stopwatch import Stopwatch
from foresail.train.trainer import Trainer


def run_sft(recipe: Sft, *, resume: bool = False, reader: Reader | None = None) -> Outcome:
    """`reader`: has some of the data already."""
    with (
        deterministic(recipe.run.deterministic),
        placed(recipe),
        open_ranks(recipe.cluster, recipe.run) as world,
        Session(recipe, resume=resume, world=world) as session,
    ):
        session.display.begin("reading the data")
        reader = reader or Reader(session.tokenizer)
        chats = mix_conversations(recipe.data, reader, recipe.max_length)
        for told in reader.notes.values():
            session.display.note(told)
        if chats.dropped:
            limit = f"max_length {recipe.max_length}"
            session.display.note(describe_dropped(chats.dropped, limit), style="yellow")
        texts = (f"{sequence.ids} {sequence.loss_mask}\n" for sequence in chats.entries)
        named_sources = " and ".join(source.source for source in recipe.data)
        session.progress = same_data(session.progress, f"data {named_sources}", "conversations", texts)
        supply = open_supply(chats.datasets, [None] * len(chats.datasets), recipe.data)
        for step in session.steps():
            watch = Stopwatch()
            progress = session.progress
            decks = supply.decks(None, position=progress.position, places=progress.places)
            drawn, places = draw(decks, recipe.batch_size, seed=recipe.run.seed, position=progress.position)
            if len(drawn) < recipe.batch_size:
                session.display.note(f"data.epochs leaves less than step {step} needs: the run ends here")
                session.finish()
                continue
            sequences = [chats.entries[index] for index in drawn]
            rate = learning_rate(step, recipe.steps, recipe.optimizer)
            session.display.begin("update", span=(0.0, 1.0))
            with watch("update"):
                found = session.everywhere(update, sequences, rate)
            seen = sum(len(sequence.ids) for sequence in sequences)
            metrics = {"train/loss": found.pop("loss"), **named("actor", found), "train/lr": rate}
            metrics |= {"train/tokens": seen, "perf/throughput": seen / watch.seconds["update"]}
            metrics |= describe_sources(chats, drawn, recipe.data)
            progress = replace(
                progress,
                step=step,
                updates=step,
                position=progress.position + recipe.batch_size,
                places={name: place for name, place in places.items() if name != WHOLE},
            )
            session.end_step(progress, metrics | watch.metrics())
    return session.outcome


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
    loss = partial(token_loss, loss=sft_loss, mtp=mtp_at(recipe.mtp, trainer.progress.step / recipe.steps))
    found = train_step(trainer.policy, batches, loss, learning_rate=rate)
    return found | describe_shares([batches], trainer.world)


def describe_sources(
    chats: Mixture[TrainSequence], drawn: Sequence[int], sources: Sequence[Conversations]
) -> dict[str, float]:
    """Tokens of each source in the update, where there are several; and how many conversations were dropped."""
    found: dict[str, float] = {"data/dropped": sum(chats.dropped.values())} if chats.dropped else {}
    if len(sources) > 1:
        for source in sources:
            of_source = [index for index in drawn if chats.datasets[index] == source.label]
            found[f"train/tokens/{source.label}"] = sum(len(chats.entries[i].ids) for i in of_source)
    return found
