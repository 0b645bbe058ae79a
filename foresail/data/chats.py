"""Conversations as ids and loss masks: tokenised once, by the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from foresail.data.conversations import Conversation, read_conversations, thinks
from foresail.data.pass_rates import Windowed, keep_window, read_pass_rates
from foresail.recipe.sources import Conversations
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


def encode_conversations(source: Conversations, tokenizer: Tokenizer) -> list[TrainSequence]:
    return encode_all(load_source(source).kept, source, tokenizer)


def encode_all(
    conversations: Sequence[Conversation], source: Conversations, tokenizer: Tokenizer
) -> list[TrainSequence]:
    found = []
    for number, conversation in enumerate(conversations, start=1):
        try:
            check_mode(conversation)
            records = tokenizer.encode_turns(conversation.messages, conversation.thinking)
        except ValueError as error:
            raise ValueError(f"conversation {number} of {source.source}: {error}") from error
        for turn, (ids, loss_mask) in enumerate(records, start=1):
            name = f"conversation {number}" + (f" turn {turn}" if len(records) > 1 else "")
            found.append(TrainSequence(name=name, ids=ids, loss_mask=loss_mask))
    return found


def load_source(source: Conversations) -> Windowed:
    """All of its conversations, or those within its window of pass rates."""
    conversations = read_conversations(source.source, source.limit, source.thinking)
    if source.pass_rates is None or source.pass_window is None:
        return Windowed(kept=conversations)
    try:
        rates = read_pass_rates(Path(source.pass_rates))
        found = keep_window(conversations, rates, source.pass_window, source.label)
    except ValueError as error:
        raise ValueError(f"{source.source}: {error}") from error
    if not found.kept:
        raise ValueError(f"{source.source}: {found.describe(source.pass_window)}; widen data.pass_window")
    return found


def check_mode(conversation: Conversation) -> None:
    """A mode is learnt from answers in that mode."""
    if conversation.thinking is False and thinks(conversation.messages):
        raise ValueError(
            'thinking is off and its answer has a thinking block; set data.thinking to true, or to "auto", which '
            "goes by the answers"
        )
    if conversation.thinking and not thinks(conversation.messages):
        raise ValueError(
            "thinking is on and its answer has no thinking block (<think>…</think>), so that a model would learn "
            'not to think; set data.thinking to false, or to "auto", which goes by the answers'
        )
