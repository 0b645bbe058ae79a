"""Conversations as ids and loss masks, from one source or several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from foresail.data.conversations import load_conversations
from foresail.recipe.sources import Conversations
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class Chats:
    """Conversations as ids and loss masks, the source of each, and by source how many were too long."""

    sequences: list[TrainSequence]
    datasets: list[str]
    dropped: dict[str, int] = field(default_factory=dict)


def encode_chats(sources: Sequence[Conversations], tokenizer: Tokenizer, max_length: int) -> Chats:
    """All sources, one after the other."""
    sequences: list[TrainSequence] = []
    datasets: list[str] = []
    dropped: dict[str, int] = {}
    for source in sources:
        encoded = encode_conversations(source, tokenizer)
        if source.too_long == "error":
            refuse_long(encoded, source.source, max_length)
        fitting = [sequence for sequence in encoded if len(sequence.ids) <= max_length]
        if not fitting:
            raise ValueError(
                f"all {len(encoded)} conversations of {source.source} are longer than max_length {max_length}; "
                "raise it"
            )
        if len(fitting) < len(encoded):
            dropped[source.label] = len(encoded) - len(fitting)
        sequences += fitting
        datasets += [source.label] * len(fitting)
    return Chats(sequences=sequences, datasets=datasets, dropped=dropped)


def encode_conversations(source: Conversations, tokenizer: Tokenizer) -> list[TrainSequence]:
    found = []
    for number, messages in enumerate(load_conversations(source.source, source.limit), start=1):
        try:
            ids, loss_mask = tokenizer.encode_conversation(messages)
        except ValueError as error:
            raise ValueError(f"conversation {number} of {source.source}: {error}") from error
        found.append(TrainSequence(name=f"conversation {number}", ids=ids, loss_mask=loss_mask))
    return found


def refuse_long(sequences: Sequence[TrainSequence], source: str, max_length: int) -> None:
    """One that is too long is an error, never cut."""
    if too_long := [sequence for sequence in sequences if len(sequence.ids) > max_length]:
        longest = max(too_long, key=lambda sequence: len(sequence.ids))
        raise ValueError(
            f"{len(too_long)} of {len(sequences)} conversations of {source} are longer than max_length "
            f"{max_length}, the longest ({longest.name}) has {len(longest.ids)} tokens; raise max_length to "
            f'{len(longest.ids)}, or leave them out: data.too_long = "drop"'
        )
