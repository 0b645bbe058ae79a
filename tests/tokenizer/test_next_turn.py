"""Turns put together by tokens are the conversation that the template writes in one go."""

from __future__ import annotations

import random

import pytest
from test_conversation_masks import CHAT, CHATML, FORGETFUL, REAL, TURNS, chatml, real

from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer


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


def test_other_text_is_as_it_was() -> None:
    tokenizer = chatml()
    for text in ("What is 12 * 3?", "<|im_star t|>", "", "日本語 \n\n"):
        assert tokenizer.encode_text(text) == tokenizer.encode(text)
    assert tokenizer.decode(tokenizer.encode_text("half \ud83d a character")) == "half ? a character"
