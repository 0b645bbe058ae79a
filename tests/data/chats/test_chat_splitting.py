"""Conversations in parts: a search makes them up, and no word is lost or learnt twice."""

from __future__ import annotations

from chat_searches import byte_tokenizer, chats
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.data.chats.conversations import Chat
from foresail.data.chats.encode import encode_messages
from foresail.data.chats.splitting import find_exchanges, split_messages, split_text
from foresail.recipe.tables.sources import Chatlog

TOKENIZER = byte_tokenizer()


@settings(max_examples=150)
@given(chats(), st.integers(20, 200), st.sampled_from(["all", "last"]))
def test_parts_hold_every_exchange_that_fits_once_and_in_order(chat: Chat, most: int, turns: str) -> None:
    source = Chatlog(source="a.jsonl", turns=turns)

    def encode(numbers):
        return encode_messages(numbers, chat, source, TOKENIZER)

    opening, exchanges = find_exchanges(chat.messages)
    assert [*opening, *(number for exchange in exchanges for number in exchange)] == [
        *range(len(chat.messages))
    ]
    found = split_messages(chat.messages, encode, most, "conversation 1")
    alone = [encode([*opening, *exchange]) for exchange in exchanges]
    fitting = [encoded for encoded in alone if len(encoded[0]) <= most]
    assert found.lost == len(alone) - len(fitting)
    assert all(len(part.ids) <= most for part in found.parts)
    learnt = [t for part in found.parts for t, m in zip(part.ids, part.loss_mask, strict=True) if m]
    assert learnt == [t for ids, mask in fitting for t, m in zip(ids, mask, strict=True) if m]
    start = encode(opening)[0] if opening else []
    assert all(part.ids[: len(start)] == start for part in found.parts)
    if len(encode(range(len(chat.messages)))[0]) <= most:
        assert len(found.parts) == 1  # nothing is split that need not be


@given(st.integers(2, 60), st.integers(2, 20))
def test_plain_text_is_learnt_token_by_token_once(length: int, most: int) -> None:
    ids = [*range(length)]
    found = split_text(ids, [0] + [1] * (length - 1), most, "conversation 1")
    learnt = [t for part in found.parts for t, m in zip(part.ids, part.loss_mask, strict=True) if m]
    assert learnt == ids[1:] and max(len(part.ids) for part in found.parts) <= most
    assert all(part.loss_mask[0] == 0 for part in found.parts)
