"""Words and phrases of a list, and how often a text has them: whole words; substrings in scripts without spaces.

phrases = Phrases.of(["bad", "very bad", "坏话"])
phrases.count("A very bad idea. 这是坏话。").different -> {"bad", "very bad", "坏话"}
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

WORD = re.compile(r"[^\W_]+")
# Thai, Lao, Tibetan, Myanmar, Khmer, Han and kana have no spaces between words
UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003347f]"
)


@dataclass(frozen=True)
class Found:
    different: tuple[str, ...]
    share: float  # of the words, or of the characters in scripts without spaces


@dataclass(frozen=True)
class Phrases:
    """`by_first`: phrases as tuples of words, by their first; `parts`: what is looked for as a substring."""

    by_first: dict[str, tuple[tuple[str, ...], ...]]
    parts: tuple[str, ...]

    @classmethod
    def of(cls, entries: Iterable[str]) -> Phrases:
        by_first: dict[str, set[tuple[str, ...]]] = {}
        parts: set[str] = set()
        for entry in map(plain, entries):
            if UNSPACED.search(entry):
                parts.add(entry)
            elif words := tuple(WORD.findall(entry)):
                by_first.setdefault(words[0], set()).add(words)
        return cls({word: tuple(sorted(own)) for word, own in by_first.items()}, tuple(sorted(parts)))

    def count(self, text: str) -> Found:
        text = plain(text)
        words = WORD.findall(text)
        different: dict[str, None] = {}
        blocked = 0
        if self.by_first.keys() & set(words):
            for place, word in enumerate(words):
                for phrase in self.by_first.get(word, ()):
                    if len(phrase) == 1 or tuple(words[place : place + len(phrase)]) == phrase:
                        different[" ".join(phrase)] = None
                        blocked += len(phrase)
        share = blocked / max(len(words), 1)
        characters = 0
        for part in self.parts:
            if occurrences := text.count(part):
                different[part] = None
                characters += occurrences * len(part)
        if characters:
            share = max(share, characters / max(sum(map(len, words)), 1))
        return Found(tuple(different), min(share, 1.0))


def plain(text: str) -> str:
    """One form of letters: small, and é as one character however it was written."""
    return unicodedata.normalize("NFC", text).casefold() if not text.isascii() else text.lower()
