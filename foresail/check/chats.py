"""A look at the conversations of an SFT recipe: rows, turns, and their lengths as the model will see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from foresail.check.finding import Finding, may_open, note, refusal
from foresail.check.lengths import look_at_lengths
from foresail.data.conversations import load_conversations
from foresail.data.mixture import conversation_limit
from foresail.data.reader import Reader
from foresail.recipe.sft import Sft
from foresail.recipe.sources import Conversations, named
from foresail.records import TrainSequence


def look_at_chats(
    recipe: Sft, reader: Reader | None, *, max_context: int | None, largest: int | None
) -> Iterator[Finding]:
    limit, room_for = conversation_limit(recipe.max_length), partial(set_length, max_context=max_context)
    for key, source in named("data", recipe.data):
        if not may_open(source.source, largest):
            continue
        try:
            if reader is None:
                load_conversations(source.source, source.limit)
                continue
            sequences = reader.conversations(source)
        except (OSError, ValueError, ImportError) as error:
            yield refusal(f"{key}: {error}")
            continue
        yield note(describe(key, source, sequences))
        yield from (note(f"{key}: {told}") for told in (reader.notes.get(source),) if told)
        yield from look_at_lengths(key, source, sequences, limit, room_for)


def describe(key: str, source: Conversations, sequences: Sequence[TrainSequence]) -> str:
    lengths = [len(sequence.ids) for sequence in sequences]
    learnt = sum(sum(sequence.loss_mask) for sequence in sequences)
    return (
        f"{key}: {len(sequences):,} conversations of {source.label}, of {min(lengths)} to {max(lengths)} tokens, "
        f"{learnt / sum(lengths):.0%} of them learnt"
    )


def set_length(tokens: int, *, max_context: int | None) -> str:
    """What to set for a conversation of so many tokens, as far as the model's context goes."""
    if max_context is None or tokens <= max_context:
        return f"set max_length = {tokens}"
    return f"use a model with a longer context than {max_context} tokens"
