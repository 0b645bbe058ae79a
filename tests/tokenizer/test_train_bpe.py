"""Training a small BPE."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.records import Message
from foresail.tokenizer import tokenizer as tokenizer_module
from foresail.tokenizer.train import train_bpe

TEXTS = ["the tall ship sails, the tall mast sways", "in 1999 there were 1234 ships"] * 10
WHOLE = ["<think>", "</think>", "\\boxed{"]
BYTES = train_bpe(TEXTS, vocab_size=320, whole_tokens=WHOLE)


@settings(deadline=None)
@given(st.text())
def test_every_text_survives(text: str) -> None:
    assert BYTES.decode(BYTES.encode(text)) == text


def test_digits_are_tokens_of_their_own() -> None:
    assert [BYTES.decode([token]) for token in BYTES.encode("the 1999")] == ["the", " ", "1", "9", "9", "9"]


def test_training_is_deterministic() -> None:
    assert train_bpe(iter(TEXTS), vocab_size=320, whole_tokens=WHOLE).files == BYTES.files


def test_vocabulary_is_filled_with_merges_of_the_texts() -> None:
    longer = ["".join(chr(ord("a") + (i * j) % 26) for j in range(30)) for i in range(1, 40)]
    assert train_bpe(longer, vocab_size=400).vocab_size == 400
    assert len(BYTES.encode(" tall")) == 1


def test_whole_tokens_are_kept_and_special_ones_skipped() -> None:
    text = "<think>the</think>\\boxed{1}"
    ids = BYTES.encode(text)
    assert [BYTES.decode([token]) for token in ids] == ["<think>", "the", "</think>", "\\boxed{", "1", "}"]
    assert BYTES.decode([*ids, *BYTES.eos_ids], skip_special_tokens=True) == text
    assert BYTES.decode([*ids, *BYTES.eos_ids]) == text + "<|end|>"


def test_default_template_spends_one_token_a_turn() -> None:
    chat = [Message(role="user", content="1"), Message(role="assistant", content="2")]
    ids, mask = BYTES.encode_conversation(chat)
    assert BYTES.decode(ids) == "<|user|>1<|assistant|>2<|end|>"
    assert mask == [0, 0, 0, 1, 1]
    assert ids[:3] == BYTES.encode_prompt(chat[:1])


def test_many_prompts_are_encoded_as_each_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizer_module, "TEXTS_PER_CALL", 3)
    chats = [[Message(role="user", content=f"{number} + 1")] for number in range(8)]
    assert BYTES.encode_prompts(chats) == [BYTES.encode_prompt(chat) for chat in chats]
    assert BYTES.encode_prompts([]) == []


def test_a_character_nobody_knows_is_an_error_among_many_prompts() -> None:
    tokenizer = train_bpe(["1+2=3"], vocab_size=40, alphabet="seen")
    chats = [[Message(role="user", content=text)] for text in ("1+2", "1+5")]
    with pytest.raises(ValueError, match=r"no token for '5' in"):
        tokenizer.encode_prompts(chats)


def test_seen_alphabet_is_small_and_refuses_the_rest() -> None:
    tokenizer = train_bpe(["1+2=3", "<think>4</think>"], vocab_size=40, whole_tokens=WHOLE, alphabet="seen")
    # end, four roles, unknown; six symbols; three whole tokens
    assert tokenizer.vocab_size == 6 + 6 + 3
    assert tokenizer.decode(tokenizer.encode("<think>4=3</think>")) == "<think>4=3</think>"
    with pytest.raises(ValueError, match=r"no token for '5' in '1\+5=3'; train it on texts that hold it"):
        tokenizer.encode("1+5=3")


@pytest.mark.parametrize("character", ["é", "日", "👩"])
def test_seen_alphabet_refuses_characters_known_by_half(character: str) -> None:
    # The first byte of each has been seen, the last has not: half a character must not slip through.
    half = {"é": "è", "日": "旦", "👩": "👨"}[character]
    tokenizer = train_bpe([half], vocab_size=40, alphabet="seen")
    assert tokenizer.decode(tokenizer.encode(half)) == half
    with pytest.raises(ValueError, match=f"no token for '{character}'"):
        tokenizer.encode(half + character)


def test_too_small_a_vocabulary_says_how_much_is_needed() -> None:
    with pytest.raises(
        ValueError, match=r'5 special tokens, 1 whole tokens and 256 bytes need at least 262.*"seen"'
    ):
        train_bpe(TEXTS, vocab_size=100, whole_tokens=["<think>"])
    with pytest.raises(
        ValueError, match=r"6 special tokens, 0 whole tokens and 2 bytes need at least 8; raise it$"
    ):
        train_bpe(["ab"], vocab_size=7, alphabet="seen")
