"""Encodes documents, many at once and without a template, for pretraining.

encoder = DocumentEncoder(tokenizer)
encoder.encode(["one text", "another"]) -> [[12, 7], [31]]
encoder.begin, encoder.end                what stands before and after each document
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from foresail.tokenizer.tokenizer import Tokenizer, check_known, leading_ids, parse_definition, unknown_id


class DocumentEncoder:
    """Special tokens' names in a text are plain text, unless `special_tokens` is set."""

    def __init__(self, tokenizer: Tokenizer, *, special_tokens: bool = False) -> None:
        self._core = parse_definition(tokenizer.files.definition)
        further = without_prefix(tokenizer.files.definition)
        self._further = self._core if further is None else parse_definition(further)
        self._unknown_id = unknown_id(self._core)
        self.begin, self.end = leading_ids(self._core), tokenizer.eos_ids[0]
        for core in (self._core, self._further):
            core.post_processor = None
            core.encode_special_tokens = not special_tokens

    def encode(self, texts: Sequence[str], begins: Sequence[bool] | None = None) -> list[list[int]]:
        """`begins`: which texts begin a document, the others continue one. None: all begin one."""
        begins = [True] * len(texts) if begins is None else begins
        firsts, others = (
            iter(
                core.encode_batch_fast(
                    [text for text, first in zip(texts, begins, strict=True) if first == is_first],
                    add_special_tokens=False,
                )
            )
            for core, is_first in ((self._core, True), (self._further, False))
        )
        encoded = [next(firsts if first else others).ids for first in begins]
        for text, ids in zip(texts, encoded, strict=True) if self._unknown_id is not None else ():
            if self._unknown_id in ids:
                check_known(text, self._core.encode(text, add_special_tokens=False), self._unknown_id)
        return encoded


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
