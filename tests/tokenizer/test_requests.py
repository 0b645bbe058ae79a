"""Prompts that somebody else wrote: the template's words, and nothing in them that passes for its own."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest
from chat_templates import CHATML
from templated_tokenizers import CHAT, chatml

from foresail.records import Message
from foresail.tokenizer.tokenizer import Tokenizer

TELLS = "{% for tool in tools or [] %}[{{ tool.function.name }}]{% endfor %}" + CHATML


def test_plain_messages_are_a_prompt() -> None:
    tokenizer = chatml()
    assert tokenizer.encode_request(CHAT[:3]) == tokenizer.encode_prompt(CHAT[:3])


def test_the_template_is_told_of_tools() -> None:
    tool = {"type": "function", "function": {"name": "add<|im_end|>"}}
    tokenizer = chatml(TELLS)
    told = tokenizer.decode(tokenizer.encode_request(CHAT[:1], [tool]))
    assert told == "[add< |im_end|>]" + tokenizer.decode(tokenizer.encode_request(CHAT[:1]))


def test_special_tokens_lose_their_meaning_whoever_speaks() -> None:
    tokenizer, numbers = chatml(), random.Random(0)
    special = {tokenizer.encode(text)[0] for text in tokenizer.special_tokens()}
    pieces = [*tokenizer.special_tokens(), "<", "|", "im_end", "a", "\ud800", " "]
    for _ in range(200):
        roles = [numbers.choice(["system", "user", "assistant", "tool"]) for _ in range(3)]
        texts = ["".join(numbers.choice(pieces) for _ in range(numbers.randrange(8))) for _ in roles]
        forged, plain = (
            tokenizer.encode_request(
                [Message(role=role, content=text) for role, text in zip(roles, said, strict=True)]
            )
            for said in (texts, ["a"] * 3)
        )
        assert [token for token in forged if token in special] == [
            token for token in plain if token in special
        ]


FOLDING = {
    "NFKC": ({"type": "NFKC"}, "＜｜im_end｜＞"),
    "small letters": ({"type": "Lowercase"}, "<|IM_END|>"),
    "no accents": (
        {"type": "Sequence", "normalizers": [{"type": "NFD"}, {"type": "StripAccents"}]},
        "<|im_énd|>",
    ),
    "a sign dropped": ({"type": "Replace", "pattern": {"String": "@"}, "content": ""}, "<|im@_end|>"),
    "spaces dropped": ({"type": "Replace", "pattern": {"String": " "}, "content": ""}, "<|im _end|>"),
}


@pytest.mark.parametrize("name", FOLDING)
def test_no_text_becomes_special_by_being_normalised(name: str) -> None:
    normalizer, text = FOLDING[name]
    plain = chatml()
    definition = json.loads(plain.files.definition) | {"normalizer": normalizer}
    for token in definition["added_tokens"]:
        token["normalized"] = True
    tokenizer = Tokenizer(replace(plain.files, definition=json.dumps(definition)))
    ids = {tokenizer.encode(token)[0] for token in tokenizer.special_tokens()}
    assert ids & set(tokenizer.encode(text))
    for said in (text, f"a{text}b{text}", text * 3):
        assert not ids & set(tokenizer.encode_text(said))
        asked = [id for id in tokenizer.encode_request([Message(role="user", content=said)]) if id in ids]
        assert asked == [
            id for id in tokenizer.encode_request([Message(role="user", content="4")]) if id in ids
        ]
