"""Conversations as ids and loss masks: tokenised once, by the model's own chat template."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from foresail.data.chats.conversations import Chat, load_chats, thinks
from foresail.data.chats.loss_rule import learnt_messages
from foresail.data.chats.pass_rates import Windowed, keep_window, read_pass_rates
from foresail.data.chats.splitting import Ids, Split, split_messages, split_text
from foresail.recipe.tables.sources import Chatlog
from foresail.records import TrainSequence
from foresail.tokenizer.tokenizer import Tokenizer


def encode_chats(chats: Sequence[Chat], source: Chatlog, tokenizer: Tokenizer) -> list[TrainSequence]:
    sequences = []
    for chat in chats:
        try:
            ids, loss_mask = encode_messages(range(len(chat.messages)), chat, source, tokenizer)
        except ValueError as error:
            raise ValueError(f"{name_of(chat)} of {source.source}: {error}") from error
        sequences.append(TrainSequence(name=name_of(chat), ids=ids, loss_mask=loss_mask))
    return sequences


def load_source(source: Chatlog) -> Windowed:
    """All of its conversations, or those within its window of pass rates."""
    chats = load_chats(source.source, source.limit, source.thinking)
    if source.pass_rates is None or source.pass_window is None:
        return Windowed(kept=chats)
    try:
        rates = read_pass_rates(Path(source.pass_rates))
        windowed = keep_window(chats, rates, source.pass_window, source.label)
    except ValueError as error:
        raise ValueError(f"{source.source}: {error}") from error
    if not windowed.kept:
        raise ValueError(f"{source.source}: {windowed.describe(source.pass_window)}; widen data.pass_window")
    return windowed


def in_turns(chats: Sequence[Chat], source: Chatlog, tokenizer: Tokenizer) -> list[Chat]:
    """Some templates drop the thinking of earlier answers. With thinking on or off, a conversation of several
    answers then becomes several, each ending with one answer, so that prompts in training equal those of a
    rollout.
    """
    parts: list[Chat] = []
    for chat in chats:
        try:
            parts += turns_of(chat, tokenizer)
        except ValueError as error:
            raise ValueError(f"{name_of(chat)} of {source.source}: {error}") from error
    return parts


def turns_of(chat: Chat, tokenizer: Tokenizer) -> Iterator[Chat]:
    if len(chat.messages) == 1:  # plain text, which has no mode
        yield replace(chat, thinking=None)
        return
    check_mode(chat)
    if chat.thinking is None or tokenizer.keeps_turns(chat.messages, chat.thinking, chat.tools):
        yield chat
        return
    for place, message in enumerate(chat.messages):
        if message.role == "assistant":
            yield replace(chat, messages=chat.messages[: place + 1], only_last=True)


def check_mode(chat: Chat) -> None:
    """Raise if the answer's thinking does not match the conversation's mode."""
    if chat.thinking is False and thinks(chat.messages):
        raise ValueError(
            'thinking is off and its answer has a thinking block; set data.thinking to true, or to "auto", which '
            "goes by the answers"
        )
    if chat.thinking and not thinks(chat.messages):
        raise ValueError(
            "thinking is on and its answer has no thinking block (<think>…</think>), so that a model would learn "
            'not to think; set data.thinking to false, or to "auto", which goes by the answers'
        )


def name_of(chat: Chat) -> str:
    answers = sum(message.role == "assistant" for message in chat.messages)
    return f"conversation {chat.row + 1}" + (f" up to answer {answers}" if chat.only_last else "")


def encode_messages(numbers: Sequence[int], chat: Chat, source: Chatlog, tokenizer: Tokenizer) -> Ids:
    """Some of a conversation's messages; their losses follow from the whole conversation."""
    learnt = learnt_messages(chat.messages, roles=source.roles, turns=source.turns)
    if chat.only_last:
        learnt = [*[False] * (len(learnt) - 1), learnt[-1]]
    return tokenizer.encode_conversation(
        [chat.messages[number] for number in numbers],
        tools=chat.tools,
        learnt=[learnt[number] for number in numbers],
        thinking=chat.thinking,
    )


def split_conversations(
    source: Chatlog, tokenizer: Tokenizer, rows: Sequence[int], max_tokens: int
) -> dict[int, Split]:
    """The parts of these conversations, which are too long; others are not read."""
    chats = in_turns(load_source(source).kept, source, tokenizer)
    splits = {}
    for row in rows:
        chat, name = chats[row], name_of(chats[row])
        encode = partial(encode_messages, chat=chat, source=source, tokenizer=tokenizer)
        if len(chat.messages) == 1:
            splits[row] = split_text(*encode([0]), max_tokens, name)
        else:
            splits[row] = split_messages(chat.messages, encode, max_tokens, name)
    return splits
