"""Encodes documents, many at once and without a template, for pretraining.

encoder = DocumentEncoder(tokenizer)
encoder.encode(["one text", "another"]) -> [[12, 7], [31]]
encoder.begin, encoder.end                what stands before and after each document
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Literal

import tokenizers

from foresail.tokenizer.gigatoken_core import ADVICE, GigatokenCore
from foresail.tokenizer.tokenizer import Tokenizer, check_known, leading_ids, parse_definition, unknown_id

EncoderName = Literal["tokenizers", "gigatoken"]
CALLS_PER_CHECK = 64  # of another encoder; the first call and each one after so many are compared
Encode = Callable[[Sequence[str]], list[list[int]]]


class DocumentEncoder:
    """Special tokens' names in a text are plain text, unless `special_tokens` is set."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        special_tokens: bool = False,
        encoder: EncoderName = "tokenizers",
        calls_per_check: int = CALLS_PER_CHECK,
    ) -> None:
        definition = tokenizer.files.definition
        self._core = parse_definition(definition)
        further = without_prefix(definition)
        self._further = self._core if further is None else parse_definition(further)
        self._unknown_id = unknown_id(self._core)
        self.begin, self.end = leading_ids(self._core), tokenizer.eos_ids[0]
        for core in (self._core, self._further):
            core.post_processor = None
            core.encode_special_tokens = not special_tokens
        self._usual = (usual(self._core), usual(self._further))
        self._encoders, self._calls, self._calls_per_check = self._usual, 0, calls_per_check
        if encoder == "gigatoken":
            first = GigatokenCore(definition, special_tokens=special_tokens)
            others = first if further is None else GigatokenCore(further, special_tokens=special_tokens)
            self._encoders = (first.encode, others.encode)

    def encode(self, texts: Sequence[str], begins: Sequence[bool] | None = None) -> list[list[int]]:
        """`begins`: which texts begin a document, the others continue one. None: all begin one."""
        begins = [True] * len(texts) if begins is None else begins
        encoded = encode_by(self._encoders, texts, begins)
        if self._encoders is not self._usual and self._calls % self._calls_per_check == 0:
            self.check(texts, begins)
        self._calls += 1
        for text, ids in zip(texts, encoded, strict=True) if self._unknown_id is not None else ():
            if self._unknown_id in ids:
                check_known(text, self._core.encode(text, add_special_tokens=False), self._unknown_id)
        return encoded

    def check(self, texts: Sequence[str], begins: Sequence[bool]) -> None:
        """Raise where the ids are not those of `tokenizers`."""
        encoded = (encode_by(encoders, texts, begins) for encoders in (self._encoders, self._usual))
        for text, found, expected in zip(texts, *encoded, strict=True):
            if found != expected:
                raise ValueError(f"gigatoken gives other ids than tokenizers for {text[:60]!r}; {ADVICE}")


def usual(core: tokenizers.Tokenizer) -> Encode:
    return lambda texts: [part.ids for part in core.encode_batch_fast([*texts], add_special_tokens=False)]


def encode_by(
    encoders: tuple[Encode, Encode], texts: Sequence[str], begins: Sequence[bool]
) -> list[list[int]]:
    """`encoders`: of texts that begin a document, and of those that continue one."""
    firsts, others = (
        iter(encode([text for text, first in zip(texts, begins, strict=True) if first == is_first]))
        for encode, is_first in zip(encoders, (True, False), strict=True)
    )
    return [next(firsts if first else others) for first in begins]


def without_prefix(definition: str) -> str | None:
    """The tokenizer without the blank that it puts before a text, as Llama 2's does; None if it puts none."""
    content = json.loads(definition)
    steps = {name: content.get(name) for name in ("normalizer", "pre_tokenizer")}
    remaining_steps = {name: drop_prefix(step) for name, step in steps.items()}
    return None if remaining_steps == steps else json.dumps(content | remaining_steps)


def drop_prefix(step: dict[str, Any] | None) -> dict[str, Any] | None:
    """A step of a definition without what puts a blank before a text; None: nothing is left of it."""
    if step is None or step["type"] == "Prepend":
        return None
    if step["type"] == "Metaspace":
        return {**step, "prepend_scheme": "never", "add_prefix_space": False}
    if step["type"] == "ByteLevel" and "add_prefix_space" in step:
        return {**step, "add_prefix_space": False}
    inner: dict[str, Any] = {
        name: [remaining for inside in step[name] if (remaining := drop_prefix(inside)) is not None]
        for name in ("normalizers", "pretokenizers")
        if name in step
    }
    return {**step, **inner}
