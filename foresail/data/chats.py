"""Conversations as ids and loss masks: tokenised once, by the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from foresail.data.conversations import Chat, load_chats
from foresail.data.loss_rule import learnt_messages
from foresail.data.splitting import Ids, Split, split_messages, split_text
from foresail.recipe.sources import Chatlog
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


def encode_conversations(source: Chatlog, tokenizer: Tokenizer) -> list[TrainSequence]:
    found = []
    for number, chat in enumerate(load_chats(source.source, source.limit), start=1):
        try:
            ids, loss_mask = encode_messages(range(len(chat.messages)), chat, source, tokenizer)
        except ValueError as error:
            raise ValueError(f"conversation {number} of {source.source}: {error}") from error
        found.append(TrainSequence(name=f"conversation {number}", ids=ids, loss_mask=loss_mask))
    return found


def encode_messages(numbers: Sequence[int], chat: Chat, source: Chatlog, tokenizer: Tokenizer) -> Ids:
    """Some of a conversation's messages; which of them have a loss, the whole conversation says."""
    learnt = learnt_messages(chat.messages, roles=source.roles, turns=source.turns)
    return tokenizer.encode_conversation(
        [chat.messages[number] for number in numbers],
        tools=chat.tools,
        learnt=[learnt[number] for number in numbers],
    )


def split_conversations(
    source: Chatlog, tokenizer: Tokenizer, rows: Sequence[int], max_tokens: int
) -> dict[int, Split]:
    """These conversations, which are too long, in parts; the rest is not looked at."""
    chats = load_chats(source.source, source.limit)
    found = {}
    for row in rows:
        chat, name = chats[row], f"conversation {row + 1}"
        encode = partial(encode_messages, chat=chat, source=source, tokenizer=tokenizer)
        if len(chat.messages) == 1:
            found[row] = split_text(*encode([0]), max_tokens, name)
        else:
            found[row] = split_messages(chat.messages, encode, max_tokens, name)
    return found
