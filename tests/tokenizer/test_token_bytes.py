"""The bytes of tokens, put together, are the bytes of the text."""

from __future__ import annotations

import random

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from foresail.tokenizer.token_bytes import token_bytes
from foresail.tokenizer.train import train_bpe

TEXTS = [
    "in the end there were two of them, 数学 и числа",
    "the theme\n\tof naïve thinking </answer> 🎉🎉",
] * 4


def byte_level() -> tokenizers.Tokenizer:
    return train_bpe(TEXTS, vocab_size=330, whole_tokens=["<think>"])._core


def sentence_piece() -> tokenizers.Tokenizer:
    """As Llama 2's and Mistral's: pieces with spaces in them, and bytes where there is no piece."""
    core = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    core.normalizer = normalizers.Replace(" ", "▁")
    core.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    alphabet = sorted(set("".join(TEXTS[:1]).replace(" ", "▁")))
    special = ["<unk>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    core.train_from_iterator([text.replace(" ", "▁") for text in TEXTS[:1]], trainer)
    return core


def metaspace() -> tokenizers.Tokenizer:
    core = tokenizers.Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    core.decoder = decoders.Metaspace(prepend_scheme="never")
    core.train_from_iterator(TEXTS, trainers.BpeTrainer(vocab_size=200, show_progress=False))
    return core


@pytest.mark.parametrize("make", [byte_level, sentence_piece, metaspace])
def test_the_bytes_of_tokens_are_the_bytes_of_the_text(make) -> None:
    core, numbers = make(), random.Random(0)
    spelled = token_bytes(core)
    assert len(spelled) == max(core.get_vocab(with_added_tokens=True).values()) + 1
    for _ in range(300):
        text = numbers.choice(TEXTS)
        start = numbers.randrange(len(text))
        part = text[start : start + numbers.randint(1, 30)]
        ids = core.encode(part, add_special_tokens=False).ids
        assert b"".join(spelled[number] for number in ids).decode() == part


@pytest.mark.parametrize("make", [byte_level, sentence_piece])
def test_tokens_in_any_order_decode_to_their_bytes(make) -> None:
    """Where those are no whole characters, decoding shows stand-ins; the bytes are exact."""
    core, numbers = make(), random.Random(0)
    spelled = token_bytes(core)
    for _ in range(300):
        ids = [numbers.randrange(3, len(spelled)) for _ in range(numbers.randint(1, 8))]
        text = b"".join(spelled[number] for number in ids)
        decoded = core.decode(ids, skip_special_tokens=False)
        try:
            assert decoded == text.decode()
        except UnicodeDecodeError:
            assert "\N{REPLACEMENT CHARACTER}" in decoded


def test_added_tokens_are_their_text() -> None:
    core = byte_level()
    spelled = token_bytes(core)
    assert spelled[core.token_to_id("<think>")] == b"<think>"
    assert spelled[core.token_to_id("<|end|>")] == b"<|end|>"


def test_a_tokenizer_of_words_is_refused() -> None:
    core = tokenizers.Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}, unk_token="[UNK]"))
    with pytest.raises(ValueError, match=r"byte-level or SentencePiece tokenizer.* is missing"):
        token_bytes(core)
    core.decoder = decoders.WordPiece()
    with pytest.raises(ValueError, match="the decoder of this one is WordPiece"):
        token_bytes(core)
