"""Conversations as ids and loss masks: tokenised once, by the model's own chat template."""

from __future__ import annotations

from foresail.data.conversations import load_conversations
from foresail.recipe.sources import Conversations
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


def encode_conversations(source: Conversations, tokenizer: Tokenizer) -> list[TrainSequence]:
    found = []
    for number, messages in enumerate(load_conversations(source.source, source.limit), start=1):
        try:
            ids, loss_mask = tokenizer.encode_conversation(messages)
        except ValueError as error:
            raise ValueError(f"conversation {number} of {source.source}: {error}") from error
        found.append(TrainSequence(name=f"conversation {number}", ids=ids, loss_mask=loss_mask))
    return found
