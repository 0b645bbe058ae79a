"""Which tokens a text can reach: those whose own text is encoded as this one token."""

from __future__ import annotations

from collections.abc import Sequence

import tokenizers


def unreachable(core: tokenizers.Tokenizer, tokens: Sequence[bytes]) -> list[int]:
    """Ids of tokens that are whole texts and that `encode` never makes of this text, under the real pre-tokenizer.

    A token inside a character has no text; it is not tested here.
    """
    texts = {number: token.decode() for number, token in enumerate(tokens) if is_text(token)}
    encodings = core.encode_batch_fast([*texts.values()], add_special_tokens=False)
    return [number for number, encoding in zip(texts, encodings, strict=True) if encoding.ids != [number]]


def is_text(token: bytes) -> bool:
    """is_text("é".encode()) -> True, is_text("é".encode()[:1]) -> False."""
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True
