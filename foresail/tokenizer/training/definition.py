"""tokenizer.json of a byte-level BPE whose merges are every split."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from foresail.tokenizer.token_bytes import BYTES
from foresail.tokenizer.training.merges import every_split

SYMBOLS = {byte: symbol for symbol, byte in BYTES.items()}


def symbols_of(token: bytes) -> str:
    """symbols_of(b" the") -> "Ġthe": how tokenizer.json spells bytes."""
    return "".join(SYMBOLS[byte] for byte in token)


def write_definition(
    tokens: Sequence[bytes], pattern: str, *, specials: Sequence[str] = (), wholes: Sequence[str] = ()
) -> str:
    """The id of a token is its place. Behind them come special tokens, then texts that are never split."""
    spelled = {token: symbols_of(token) for token in tokens}
    added = [
        added_token(len(tokens) + number, text, special=number < len(specials))
        for number, text in enumerate([*specials, *wholes])
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {spelled[token]: number for number, token in enumerate(tokens)},
            "merges": [[spelled[left], spelled[right]] for left, right in every_split(tokens)],
        },
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def added_token(number: int, text: str, *, special: bool) -> dict[str, Any]:
    return {
        "id": number,
        "content": text,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        "normalized": False,
        "special": special,
    }
