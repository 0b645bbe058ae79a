"""The encoder of the package gigatoken, which writes the ids of `tokenizers` several times as fast.

    core = GigatokenCore(definition, special_tokens=False)
    core.encode(["one text"]) -> [[12, 7]]

It knows byte-level and SentencePiece BPEs by the pattern that cuts their words, those of well-known models, and
refuses others. Nothing here trusts it: see `choose_encoder` and the spot checks of `DocumentEncoder`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

ADVICE = "use --encoder tokenizers"


class GigatokenCore:
    """Special tokens' names in a text are plain text, unless `special_tokens` is set."""

    def __init__(self, definition: str, *, special_tokens: bool) -> None:
        try:
            from gigatoken.gigatoken_rs import load_hf_json
        except ImportError as error:
            raise ImportError(
                f"the encoder gigatoken is not installed: pip install 'foresail[fast-tokenize]', or {ADVICE}"
            ) from error
        try:
            self._core = load_hf_json(json.dumps(plain_definition(definition, special_tokens)))
        except BaseException as error:  # the library raises RuntimeError, and where it panics not even that
            if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
                raise
            reason = str(error).partition("\n")[0]
            raise ValueError(f"gigatoken does not know this tokenizer ({reason}); {ADVICE}") from error

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """On the calling thread: every core has a process of its own."""
        ids: list[list[int]] = self._core.encode_batch_list(list(texts), parallel=False)
        return ids


def plain_definition(definition: str, special_tokens: bool) -> dict[str, Any]:
    """Without what adds tokens to a text or cuts it short, and, where they mean nothing, without special tokens."""
    content: dict[str, Any] = json.loads(definition)
    content |= {"post_processor": None, "truncation": None, "padding": None}
    if not special_tokens:
        content["added_tokens"] = [token for token in content["added_tokens"] if not token["special"]]
    return content
