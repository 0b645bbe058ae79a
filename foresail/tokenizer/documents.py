"""Documents to ids, many at once: texts to learn from, which need no template.

encoder = DocumentEncoder(tokenizer)
encoder.encode(["one text", "another"]) -> [[12, 7], [31]]
encoder.begin, encoder.end                what stands before and after each document
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from foresail.tokenizer.tokenizer import Tokenizer, excerpt, leading_ids, parse_definition, unknown_id

LONGEST_PART = 2**18  # characters that are encoded at once: memory stays bounded, however long a document is


class DocumentEncoder:
    """Names of special tokens in a text are text, unless `special_tokens` says that they mean these tokens."""

    def __init__(self, tokenizer: Tokenizer, *, special_tokens: bool = False) -> None:
        self._core = parse_definition(tokenizer.files.definition)
        self._unknown_id = unknown_id(self._core)
        self.begin, self.end = leading_ids(self._core), tokenizer.eos_ids[0]
        self._core.post_processor = None
        self._core.encode_special_tokens = not special_tokens

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        found = [
            encoding.ids for encoding in self._core.encode_batch_fast([*texts], add_special_tokens=False)
        ]
        if self._unknown_id is not None:
            for text, ids in zip(texts, found, strict=True):
                if self._unknown_id in ids:
                    raise ValueError(self._explain_unknown(text))
        return found

    def _explain_unknown(self, text: str) -> str:
        assert self._unknown_id is not None
        encoding = self._core.encode(text, add_special_tokens=False)
        start, end = encoding.offsets[encoding.ids.index(self._unknown_id)]
        return (
            f"the tokenizer has no token for {text[start:end]!r} in {excerpt(text, start)!r}; train it on texts "
            'that hold it, or with alphabet="bytes", which knows every character'
        )


def cut_parts(text: str) -> Iterator[str]:
    """A long text in parts of at most LONGEST_PART characters, cut before white space where there is some."""
    start = 0
    while len(text) - start > LONGEST_PART:
        end = start + LONGEST_PART
        cut = max(text.rfind("\n", start + 1, end), 0) or max(text.rfind(" ", start + 1, end), 0) or end
        yield text[start:cut]
        start = cut
    yield text[start:]
