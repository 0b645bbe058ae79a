"""Supervised fine-tuning: next-token loss on the assistant's words, packed without padding.

foresail sft recipes/sft-example.toml
"""

from __future__ import annotations

from dataclasses import replace

from foresail.algorithms.aggregation import token_weights
from foresail.algorithms.sft_loss import sft_loss
from foresail.data.conversations import load_conversations
from foresail.data.order import problem_at
from foresail.data.packing import pack
from foresail.model.determinism import deterministic
from foresail.recipe.stages import Sft
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.train.origins import same_data
from foresail.train.schedule import learning_rate
from foresail.train.session import Outcome, Session
from foresail.train.step import train_step
from foresail.train.stopwatch import Stopwatch


def run_sft(recipe: Sft, *, resume: bool = False) -> Outcome:
    with deterministic(recipe.run.deterministic), Session(recipe, resume=resume) as session:
        conversations = encode_conversations(recipe, session.tokenizer)
        texts = (f"{sequence.ids} {sequence.loss_mask}\n" for sequence in conversations)
        session.progress = same_data(session.progress, f"data {recipe.data}", "conversations", texts)
        for step in session.steps():
            watch = Stopwatch()
            progress = session.progress
            places = range(progress.position, progress.position + recipe.batch_size)
            sequences = [
                conversations[problem_at(place, len(conversations), recipe.run.seed)] for place in places
            ]
            num_tokens = [sum(sequence.loss_mask) for sequence in sequences]
            weights = token_weights(num_tokens, "token-mean", recipe.max_length)
            batches = pack(sequences, weights, max_tokens=recipe.micro_batch_tokens, device=session.device)
            rate = learning_rate(step, recipe.steps, recipe.optimizer)
            with watch("update"):
                metrics = train_step(session.model, session.optimizer, batches, sft_loss, learning_rate=rate)
            seen = sum(len(sequence.ids) for sequence in sequences)
            metrics |= {"train/loss": metrics.pop("actor/loss"), "train/lr": rate, "train/tokens": seen}
            metrics |= {**watch.metrics(), "perf/throughput": seen / watch.seconds["update"]}
            progress = replace(
                progress, step=step, updates=step, position=progress.position + recipe.batch_size
            )
            session.end_step(progress, metrics)
    return session.outcome


def encode_conversations(recipe: Sft, tokenizer: Tokenizer) -> list[TrainSequence]:
    """Every conversation as ids and loss mask; one that is too long is an error, never cut."""
    sequences = []
    for number, messages in enumerate(load_conversations(recipe.data), start=1):
        ids, loss_mask = tokenizer.encode_conversation(messages)
        if len(ids) > recipe.max_length:
            raise ValueError(
                f"conversation {number} of {recipe.data} has {len(ids)} tokens and max_length is "
                f"{recipe.max_length}; raise max_length or leave it out"
            )
        sequences.append(TrainSequence(name=f"conversation {number}", ids=ids, loss_mask=loss_mask))
    return sequences
