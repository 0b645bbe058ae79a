"""Tokenizers with the chat templates of checkpoints, and a conversation to encode.

The real ones are read from the shared folder; a test that asks for one is skipped where that is absent.
"""

import lzma
from functools import cache
from pathlib import Path

import pytest
from chat_templates import CHATML, LLAMA3, MISTRAL, ZEPHYR, without_tags

from foresail.records import Message
from foresail.tokenizer.files import TokenizerFiles
from foresail.tokenizer.tokenizer import Tokenizer
from foresail.tokenizer.train import train_bpe

SHARED = Path(__file__).parents[3] / "shared" / "data" / "tokenizers"
# (template, the tokenizer in the shared folder, bos, eos)
REAL = {
    "chatml": (CHATML, "qwen2_5", None, "<|im_end|>"),
    "llama3": (LLAMA3, "llama3", "<|begin_of_text|>", "<|eot_id|>"),
    "mistral": (MISTRAL, "deepseek_v3", "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
    "zephyr": (ZEPHYR, "gemma3", "<bos>", "<eos>"),
}
TURNS = (
    ("user", "What is 12 * 3?\n\n```py\nprint(12*3)\n```"),
    ("assistant", "It's 36 — naïve, très «simple» 👩‍🚀🇫🇷 日本語"),
    ("user", "  and + 1? é (decomposed: e\u0301)"),
    ("assistant", "<think>36 + 1</think>\n\n\\boxed{37}"),
)
CHAT = tuple(Message(role=role, content=content) for role, content in TURNS)


@cache
def definition(name: str) -> str:
    path = SHARED / name / "tokenizer.json.xz"
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    return lzma.open(path, "rt", encoding="utf-8").read()


def build(text: str, template: str | None, bos: str | None = None, eos: str | None = None) -> Tokenizer:
    config = {"bos_token": bos, "eos_token": eos}
    return Tokenizer(TokenizerFiles(definition=text, config=config, chat_template=template))


@cache
def real(name: str) -> Tokenizer:
    template, folder, bos, eos = REAL[name]
    return build(definition(folder), without_tags(template), bos, eos)


@cache
def chatml(template: str = CHATML) -> Tokenizer:
    """A small tokenizer with ChatML's two tokens, for what needs no real vocabulary."""
    texts = [f"{content}\n" for _, content in TURNS] * 5
    return train_bpe(
        texts, vocab_size=350, special_tokens=["<|im_start|>", "<|im_end|>"], chat_template=template
    )
