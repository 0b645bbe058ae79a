"""Which words have a loss, in conversations that a search makes up: by role, by turn, by a row's own word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import groupby

import pytest
from chat_searches import byte_tokenizer, messages, schema
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.data.chats.loss_rule import learnt_messages
from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer

TOKENIZER = byte_tokenizer()
ROLES = ("system", "user", "assistant", "tool", "tool_call")


def own_text(message: Message) -> str:
    """What the template writes of it, by hand."""
    calls = message.extra.get("tool_calls", ())
    return message.content + "".join(
        f"<call>{json.dumps(call['function'], ensure_ascii=False)}</call>" for call in calls
    )


def learnt_pieces(tokenizer: Tokenizer, ids: Sequence[int], mask: Sequence[int]) -> list[str]:
    runs = groupby(zip(ids, mask, strict=True), key=lambda pair: pair[1])
    return [tokenizer.decode([token for token, _ in run]) for in_loss, run in runs if in_loss]


def by_hand(conversation: Sequence[Message], learnt: Sequence[bool]) -> list[str]:
    """Of the assistant all it wrote, of others their words without space around; and the end of the turn."""
    pieces = []
    for message, is_learnt in zip(conversation, learnt, strict=True):
        if is_learnt and message.role == "assistant":
            pieces.append(own_text(message) + "<|end|>")
        elif is_learnt and (words := message.content.strip()):
            pieces.append(words + "<|end|>" * (message.content.rstrip() == message.content))
    return pieces


@settings(max_examples=150)
@given(messages(flags=True), st.sets(st.sampled_from(ROLES)), st.sampled_from(["all", "last"]))
def test_the_mask_covers_the_words_of_the_learnt_messages_and_nothing_else(
    conversation, roles, turns
) -> None:
    learnt = learnt_messages(conversation, roles=[*roles], turns=turns)
    ids, mask = TOKENIZER.encode_conversation(conversation, learnt=learnt)
    assert TOKENIZER.decode(ids) == "".join(f"<|{m.role}|>{own_text(m)}<|end|>\n" for m in conversation)
    blank = [piece for piece in learnt_pieces(TOKENIZER, ids, mask) if piece != "<|end|>"]
    expected = [piece for piece in by_hand(conversation, learnt) if piece != "<|end|>"]
    assert blank == expected


@settings(max_examples=60)
@given(messages(flags=True), st.sets(st.sampled_from(ROLES)), st.sampled_from(["all", "last"]))
def test_a_rows_own_word_counts_more_than_role_and_turn(conversation, roles, turns) -> None:
    last = max(number for number, message in enumerate(conversation) if message.role == "user")
    for number, (message, learnt) in enumerate(
        zip(conversation, learnt_messages(conversation, roles=[*roles], turns=turns), strict=True)
    ):
        calls = "tool_calls" in message.extra and "tool_call" in roles
        expected = (message.role in roles or calls) and (turns == "all" or number >= last)
        assert learnt == (expected if message.train is None else message.train)


CALL = {"type": "function", "function": {"name": "add", "arguments": {"a": 41}}}
ASKED = (
    Message(role="user", content="1+1?"),
    Message(role="assistant", content="", extra={"tool_calls": [CALL]}),
    Message(role="tool", content="2"),
    Message(role="assistant", content="2"),
)
PLAIN = "{% for m in messages %}{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}{% endfor %}" + (
    "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
)


def test_a_template_that_loses_calls_or_tools_is_refused() -> None:
    plain = byte_tokenizer(PLAIN)
    with pytest.raises(ValueError, match=r"does not write the call of add.*one that writes tool_calls"):
        plain.encode_conversation(ASKED)
    half = byte_tokenizer(
        PLAIN.replace("m.content +", "m.content + (m.tool_calls[0].function.name if m.tool_calls else '') +")
    )
    with pytest.raises(ValueError, match="does not write the call of add"):
        half.encode_conversation(ASKED)
    with pytest.raises(ValueError, match=r"does not write the tools .* remove the column tools"):
        plain.encode_conversation(ASKED[:1] + ASKED[3:], tools=[schema("add")])


def test_a_role_that_the_template_folds_into_another_cannot_be_learnt() -> None:
    folding = (
        "{% for m in messages if m.role != 'system' %}{{ '<|' + m.role + '|>' }}{% if loop.first and "
        "messages[0].role == 'system' %}{{ messages[0].content }}{% endif %}{{ m.content + '<|end|>' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}"
    )
    chat = (Message(role="system", content="Be brief."), Message(role="user", content="1"), ASKED[3])
    with pytest.raises(
        ValueError, match=r"does not write message 0 \(system\) .* leave system out of data.roles"
    ):
        byte_tokenizer(folding).encode_conversation(chat, learnt=[True, False, True])
