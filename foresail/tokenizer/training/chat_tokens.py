"""The chat forms that a new tokenizer may have: control tokens, a template, and the token that ends a document."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from foresail.tokenizer.thinking import BUILT_IN

END_OF_TEXT = "<|endoftext|>"
END = "<|end|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>")


@dataclass(frozen=True, kw_only=True)
class ChatForm:
    end: str
    specials: tuple[str, ...]
    template: str | None = None


CHAT_FORMS = {
    "hybrid": ChatForm(
        end=END_OF_TEXT,
        specials=(END_OF_TEXT, "<|im_start|>", "<|im_end|>"),
        template=BUILT_IN["hybrid"][0],
    ),
    "hybrid-short": ChatForm(end=END, specials=(END, *ROLES), template=BUILT_IN["hybrid-short"][0]),
    "none": ChatForm(end=END_OF_TEXT, specials=(END_OF_TEXT,)),
}


def split_out(texts: Iterable[str], tokens: Sequence[str]) -> Iterator[str]:
    """The texts between these tokens: split_out(["<a>7<b>2"], ["<a>", "<b>"]) -> "7", "2"."""
    longest_first = sorted(tokens, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)))
    for text in texts:
        yield from filter(None, pattern.split(text))
