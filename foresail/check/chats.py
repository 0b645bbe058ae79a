"""Inspects the conversations of an SFT recipe: rows, turns, and their lengths as the model will see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from foresail.check.finding import Finding, may_open, note, refusal
from foresail.check.lengths import look_at_lengths
from foresail.data.chats.conversations import load_conversations
from foresail.data.length_limit import LengthLimit
from foresail.data.mixtures.mixture import conversation_limit, describe_chats, mix_conversations
from foresail.data.mixtures.reader import Reader
from foresail.data.mixtures.resampling import read_column
from foresail.recipe.stages.sft import Sft
from foresail.recipe.tables.sources import Chatlog
from foresail.records import TrainSequence


def look_at_chats(
    recipe: Sft, reader: Reader | None, *, max_context: int | None, largest: int | None
) -> Iterator[Finding]:
    """Inspect every source once, with the shortest max_length of the stages that use it."""
    for key, source in recipe.logs():
        if not may_open(source.source, largest):
            continue
        lengths = [phase.max_length for phase in recipe.phases if source in phase.data]
        limit = conversation_limit(min(lengths, default=recipe.max_length))
        try:
            if reader is None:
                load_conversations(source.source, source.limit)
                continue
            sequences = reader.conversations(source)
        except (OSError, ValueError, ImportError) as error:
            yield refusal(f"{key}: {error}")
            continue
        yield note(describe(key, source, sequences))
        if source.label in reader.notes:
            yield note(f"{key}: {reader.notes[source.label]}")
        yield from look_at_lengths(
            key, source, sequences, limit, partial(set_length, max_context=max_context)
        )
        yield from look_at_rest(key, source, sequences, reader, limit)
    yield from look_at_columns(recipe, largest)


def describe(key: str, source: Chatlog, sequences: Sequence[TrainSequence]) -> str:
    lengths = [len(sequence.ids) for sequence in sequences]
    learnt = sum(sum(sequence.loss_mask) for sequence in sequences)
    return (
        f"{key}: {len(sequences):,} conversations of {source.label}, of {min(lengths)} to {max(lengths)} tokens, "
        f"{learnt / sum(lengths):.0%} of them learnt"
    )


def look_at_rest(
    key: str, source: Chatlog, sequences: Sequence[TrainSequence], reader: Reader, limit: LengthLimit
) -> Iterator[Finding]:
    """Conversations that are split, held out or have no loss."""
    some, every = any(map(limit.fits, sequences)), all(map(limit.fits, sequences))
    if not every and (source.too_long == "error" or (source.too_long == "drop" and not some)):
        return  # `look_at_lengths` has said so
    try:
        chats = mix_conversations([source], reader, limit.tokens)
    except ValueError as error:
        yield refusal(f"{key}: {error}")
        return
    if held_out := sum(map(len, chats.held_out.values())):
        yield note(f"{key}: {held_out:,} of them held out, {len(chats.entries):,} to learn from")
    if source.too_long == "split" or chats.without_loss:
        yield from (note(f"{key}: {line}") for line in describe_chats(chats, limit.tokens))


def look_at_columns(recipe: Sft, largest: int | None) -> Iterator[Finding]:
    """The columns by which a stage takes the best rows of an earlier one."""
    for number in range(len(recipe.phases)):
        again = recipe.resampled(number)
        if again is None or again[0].by_loss:
            continue
        for source in recipe.phases[again[1]].data:
            if not may_open(source.source, largest):
                continue
            try:
                read_column(source, again[0].best)
            except (OSError, ValueError, ImportError) as error:
                yield refusal(f"stages#{number + 1}.resample: {error}")


def set_length(tokens: int, *, max_context: int | None) -> str:
    """The key to set so that a conversation of so many tokens fits, within the model's context."""
    if max_context is None or tokens <= max_context:
        return f"set max_length = {tokens}"
    return f"use a model with a longer context than {max_context} tokens"
