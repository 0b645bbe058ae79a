"""A look at the conversations of an SFT recipe: rows, turns, and their lengths as the model will see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foresail.check.finding import Finding, may_open, note, refusal, warning
from foresail.data.chats import encode_conversations
from foresail.data.conversations import load_conversations
from foresail.recipe.sft import Sft
from foresail.recipe.sources import Conversations, named
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


def look_at_chats(
    recipe: Sft, tokenizer: Tokenizer | None, *, max_context: int | None, largest: int | None
) -> Iterator[Finding]:
    for key, source in named("data", recipe.data):
        if not may_open(source.source, largest):
            continue
        try:
            if tokenizer is None:
                load_conversations(source.source, source.limit)
                continue
            sequences = encode_conversations(source, tokenizer)
        except (OSError, ValueError, ImportError) as error:
            yield refusal(f"{key}: {error}")
            continue
        yield from look_at_lengths(key, source, sequences, recipe.max_length, max_context)


def look_at_lengths(
    key: str,
    source: Conversations,
    sequences: Sequence[TrainSequence],
    max_length: int,
    max_context: int | None,
) -> Iterator[Finding]:
    lengths = [len(sequence.ids) for sequence in sequences]
    longest = max(lengths)
    learnt = sum(sum(sequence.loss_mask) for sequence in sequences)
    yield note(
        f"{key}: {len(sequences):,} conversations of {source.label}, of {min(lengths)} to {longest} tokens, "
        f"{learnt / sum(lengths):.0%} of them learnt"
    )
    too_long = sum(length > max_length for length in lengths)
    if not too_long:
        return
    told = f"{key}: {too_long:,} of {len(sequences):,} conversations are longer than max_length {max_length}"
    told += f", the longest ({sequences[lengths.index(longest)].name}) has {longest} tokens"
    fits = max_context is None or longest <= max_context
    room = (
        f"set max_length = {longest}"
        if fits
        else f"use a model with a longer context than {max_context} tokens"
    )
    if source.too_long == "drop" and too_long < len(sequences):
        yield warning(f'{told}; they are left out ({key}.too_long = "drop")')
    elif too_long == len(sequences):
        yield refusal(f"{told}; {room}")
    else:
        yield refusal(f'{told}; {room}, or leave them out: {key}.too_long = "drop"')
