"""What each trained tokenizer promises, by search: ids that texts reach, bytes that survive, plain names."""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from random import Random

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.tokenizer.documents import DocumentEncoder
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.training.build import build
from foresail.tokenizer.training.reachable import is_text
from foresail.tokenizer.training.recipe import TokenizerRecipe

TEXTS = {
    "latin": ["the tall ship's crew can't sail, it's 1999 — kapal berlayar, siya't ako, tiếng Việt ếệượ đ\n"]
    * 40,
    "thai": ["เรือแล่นในทะเล กำลัง ที่นี่ น้ำใหญ่ ๑๒"] * 40,
    "others": ["船在海上航行。 हिन्दी में العَرَبِيَّة 👩‍🚀🏳️‍🌈 𐍈 𠀀𠀁"] * 40,
}
FORMS = ("words", "superwords", "joint")
CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
NEVER = {bytes([value]) for value in (0xC0, 0xC1, *range(0xF5, 0x100))}
WHOLE = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")


@cache
def trained(form: str) -> Tokenizer:
    groups = [{"name": name, "files": [name], "vocab_size": 40} for name in TEXTS]
    content: dict[str, object] = {"out": "-", "vocab_size": 420, "group": groups, "character_coverage": 1.0}
    if form == "superwords":
        content["superwords"] = {"tokens": 10, "megabytes": 0.1}
    if form == "joint":
        content["training"] = "joint"
    return build(TokenizerRecipe.model_validate(content), lambda group: TEXTS[group.name]).tokenizer


@cache
def spelled_tokens(form: str) -> list[bytes]:
    return trained(form).token_bytes()


@cache
def document_encoder(form: str) -> DocumentEncoder:
    return DocumentEncoder(trained(form))


@cache
def encoder(form: str) -> tokenizers.Tokenizer:
    return tokenizers.Tokenizer.from_str(trained(form).files.definition)


@pytest.mark.parametrize("form", FORMS)
def test_each_id_is_in_the_encoding_of_some_text(form: str) -> None:
    """Searched over all characters. Left over: bytes that UTF-8 never has, needed for bytes that are no text."""
    spelled = spelled_tokens(form)
    reached: set[int] = set()
    for number, token in enumerate(spelled):
        if is_text(token) and encoder(form).encode(token.decode()).ids == [number]:
            reached.add(number)
    assert reached >= {number for number, token in enumerate(spelled) if is_text(token)}
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    for step in (101, 1):
        for start in range(0, len(characters), 4096 * step):
            for encoding in encoder(form).encode_batch_fast(characters[start : start + 4096 * step : step]):
                reached.update(encoding.ids)
            if len(reached) == len(spelled) - len(NEVER):
                break
    assert {token for number, token in enumerate(spelled) if number not in reached} == NEVER


@settings(deadline=None, max_examples=60)
@given(st.text(st.characters(codec="utf-8"), max_size=60), st.sampled_from(FORMS))
def test_texts_of_all_planes_survive(text: str, form: str) -> None:
    ids = trained(form).encode(text)
    assert trained(form).decode(ids) == text
    assert b"".join(spelled_tokens(form)[number] for number in ids) == text.encode()


@settings(deadline=None, max_examples=60)
@given(st.binary(max_size=40))
def test_bytes_that_are_no_text_have_ids(data: bytes) -> None:
    """Byte b is token b, so that any bytes can be written and read."""
    spelled = spelled_tokens("words")
    assert b"".join(spelled[value] for value in data) == data


@pytest.mark.parametrize("form", FORMS)
def test_no_token_has_two_digits_or_too_many_characters_or_begins_inside_a_character(form: str) -> None:
    names = {*CONTROL, *WHOLE}
    for token in spelled_tokens(form):
        text = token.decode(errors="ignore")
        if text not in names:
            assert len(text) <= (32 if form == "superwords" else 16)
            assert not any(character.isnumeric() for character in text) or len(text) == 1
            assert text.encode() in (token, b"")


@pytest.mark.parametrize("form", FORMS)
def test_decomposed_letters_are_not_written_as_bytes(form: str) -> None:
    """Tones of Vietnamese as marks behind their letters, as old files and PDFs have them."""
    text = unicodedata.normalize("NFD", "tiếng Việt được")
    assert all(is_text(spelled_tokens(form)[number]) for number in trained(form).encode(text))


# Names of control tokens in a document are text.


def names_and_parts() -> list[str]:
    random = Random(0)
    names = [*CONTROL, *WHOLE]
    cut = [name[: random.randrange(1, len(name))] for name in names]
    return [
        *names,
        *cut,
        *(name[1:] for name in names),
        "<",
        "|",
        ">",
        "ก",
        " ",
        "\n",
        "\x00",
        "\u200d",
        "im_end",
    ]


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(names_and_parts()), max_size=8).map("".join), st.sampled_from(FORMS))
def test_names_of_control_tokens_in_a_document_are_plain_text(text: str, form: str) -> None:
    tokenizer = trained(form)
    control = {tokenizer.vocabulary()[name] for name in CONTROL}
    [ids] = document_encoder(form).encode([text])
    assert not control.intersection(ids)
    assert b"".join(spelled_tokens(form)[number] for number in ids).decode() == text


@pytest.mark.parametrize("name", WHOLE)
def test_whole_tokens_are_never_split(name: str) -> None:
    for form in FORMS:
        for before, after in (("", ""), ("a", "b"), ("<", ">"), (" ", "\n"), ("ก", "๑")):
            ids = trained(form).encode(before + name + after)
            assert trained(form).vocabulary()[name] in ids


def test_transformers_reads_it_as_we_do(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    random = Random(1)
    for form in FORMS:
        folder = tmp_path / form
        trained(form).save(folder)
        ours = Tokenizer.load(folder)
        fast = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        for _ in range(40):
            text = "".join(random.choices(names_and_parts(), k=6))
            assert fast.encode(text, add_special_tokens=False) == ours.encode(text)
        messages = [{"role": "user", "content": "ที่นี่? 1999"}, {"role": "assistant", "content": "it's <ok>"}]
        assert "1999" in fast.apply_chat_template(messages, tokenize=False)
