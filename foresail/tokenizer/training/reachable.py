"""Which tokens a text can reach: those whose own text is encoded as this one token, by merges alone."""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers


def unreached(core: tokenizers.Tokenizer, tokens: Sequence[bytes]) -> dict[bytes, list[bytes]]:
    """Tokens that `encode` never makes of their own text under the real pre-tokenizer, and what it makes instead.

    A token inside a character has no text; it is not tested here.
    """
    numbers = [number for number, token in enumerate(tokens) if is_text(token)]
    texts = [tokens[number].decode() for number in numbers]
    encodings = core.encode_batch_fast(texts, add_special_tokens=False)
    return {
        tokens[number]: [tokens[part] for part in encoding.ids]
        for number, encoding in zip(numbers, encodings, strict=True)
        if encoding.ids != [number]
    }


def is_text(token: bytes) -> bool:
    """is_text("é".encode()) -> True, is_text("é".encode()[:1]) -> False."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True
