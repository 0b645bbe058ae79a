"""Turns put together by tokens are the conversation that the template writes in one go."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from chat_templates import CHATML, FORGETFUL
from hypothesis import given, settings
from hypothesis import strategies as st
from templated_tokenizers import CHAT, REAL, TURNS, chatml, real
from tokenizers import AddedToken

from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe


def put_together(tokenizer: Tokenizer, *, ended: bool) -> list[int]:
    """A prompt, an answer as a model would write it, and what comes before the next one."""
    first = tokenizer.encode_prompt(CHAT[:1])
    answer = tokenizer.encode(TURNS[1][1])
    eos = [
        eos for eos in tokenizer.eos_ids if tokenizer.chat.turn_ending().startswith(tokenizer.decode([eos]))
    ]
    return [*first, *answer, *(eos[:1] if ended else []), *tokenizer.encode_next_turn(CHAT[2:3], ended=ended)]


@pytest.mark.parametrize("ended", [True, False])
@pytest.mark.parametrize("name", REAL)
def test_real_templates(name: str, ended: bool) -> None:
    tokenizer = real(name)
    whole = tokenizer.encode_prompt(CHAT[:3])
    found = put_together(tokenizer, ended=ended)
    assert tokenizer.decode(found).replace(" ", "") == tokenizer.decode(whole).replace(" ", "")
    if name in ("chatml", "llama3"):
        assert found == whole


@pytest.mark.parametrize("ended", [True, False])
def test_several_messages_at_once(ended: bool) -> None:
    tokenizer = chatml()
    tools = [Message(role="tool", content=text) for text in ("4", "it is 5")]
    said = tokenizer.decode(tokenizer.encode_next_turn(tools, ended=ended))
    ending = "" if ended else "<|im_end|>"
    assert said == (
        f"{ending}\n<|im_start|>tool\n4<|im_end|>\n<|im_start|>tool\nit is 5<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_template_that_rewrites_answers_is_refused() -> None:
    with pytest.raises(ValueError, match="does not write an assistant's words as they are"):
        chatml(CHATML.replace("message.content + '<|im_end|>'", "message.content | upper")).encode_next_turn(
            CHAT[:1], ended=True
        )
    assert chatml(FORGETFUL).encode_next_turn(CHAT[:1], ended=True)  # which forgets thoughts only


def test_no_text_of_a_message_becomes_a_special_token() -> None:
    """Texts made of special tokens, parts of them and other text, at random."""
    tokenizer, numbers = chatml(), random.Random(0)
    added = tokenizer._core.get_added_tokens_decoder()
    specials = {number: token.content for number, token in added.items() if token.special}
    pieces = [
        *specials.values(),
        *(text[:k] for text in specials.values() for k in range(1, len(text))),
        " ",
        "a",
    ]
    plain = tokenizer.encode_next_turn([Message(role="tool", content="a")], ended=True)
    for _ in range(2000):
        text = "".join(numbers.choice(pieces) for _ in range(numbers.randint(1, 6)))
        assert not specials.keys() & set(tokenizer.encode_text(text)), text
        ids = tokenizer.encode_next_turn([Message(role="tool", content=text)], ended=True)
        assert [n for n in ids if n in specials] == [n for n in plain if n in specials], text


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.text("ab<| \n", min_size=2, max_size=4), min_size=1, max_size=4),
    st.text("ab<| \n", max_size=30),
)
def test_whatever_the_special_tokens_are_no_text_becomes_one(specials: list[str], text: str) -> None:
    """Spaces in them, at either end, and one within another: all are broken, and breaking comes to an end."""
    tokenizer = train_bpe(["ab<| "], vocab_size=300, alphabet="bytes", special_tokens=specials)
    wanted = {token for token in specials if len(token.strip()) > 1}
    added = tokenizer._core.get_added_tokens_decoder()
    numbers = {number for number, token in added.items() if token.content in wanted}
    assert not numbers & set(tokenizer.encode_text(text + "".join(specials)))


def test_a_control_token_that_is_not_marked_special_is_broken_too() -> None:
    core = chatml.__wrapped__()._core
    core.add_tokens([AddedToken("<｜User｜>", special=False), AddedToken("<think>", special=False)])
    tokenizer = Tokenizer(replace(chatml().files, definition=core.to_str()))
    user, think = (tokenizer._core.token_to_id(text) for text in ("<｜User｜>", "<think>"))
    ids = tokenizer.encode_text("<｜User｜><think>")
    assert user not in ids and think in ids  # the latter is for the call formats to judge


def test_other_text_is_as_it_was() -> None:
    tokenizer = chatml()
    for text in ("What is 12 * 3?", "<|im_star t|>", "", "日本語 \n\n"):
        assert tokenizer.encode_text(text) == tokenizer.encode(text)
    assert tokenizer.decode(tokenizer.encode_text("half \ud83d a character")) == "half ? a character"
