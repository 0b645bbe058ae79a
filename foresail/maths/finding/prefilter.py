"""Patterns that are tried only on texts with one of their words: most texts have none, and a lookup is fast.

Each pattern names the words that its matches begin with, and gets one bit. All patterns share one dictionary, from
a word to the bits of its patterns, so one lookup per word of a text tells which patterns may match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache, reduce
from operator import or_

from foresail.maths.lexicon.table import first_words

SHORTEST_BEGINNING = 3  # characters of a beginning of words
LONGEST_WORD = 40  # characters of a word that the dictionary stores
CAPACITY = 1 << 16  # words in it

_PARTS = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)?")
_SPACED = re.compile(r"[^\u0400-\u1dff\u1f00-\u1fff\u2e80-\ud7ff]+")
# Scripts that put no spaces between words.
UNSPACED = re.compile(r"[\u0400-\u1dff\u1f00-\u1fff\u2e80-\ud7ff\uf900-\ufaff]")
# Too common to be looked up: what begins with one of these is matched only by patterns with `marks`.
_COMMON = frozenset(
    "of to that the have been be and on way but from than believe think follow this it a an one".split()
)
# Bytes are translated ten times faster than characters.
_ASCII = bytes(
    ord(chr(code).lower()) if chr(code).isalpha() or code == ord("'") else ord(" ") for code in range(128)
)
_TABLE = _ASCII + b" " * 128


def plain_words(text: str) -> list[str]:
    """The words in small letters: plain_words("So $x=2$, isn't it?") -> ["so", "x", "isn't", "it"]."""
    if text.isascii():
        return text.encode().translate(_TABLE).decode().split()
    return _PARTS.findall(text.lower())


class _WordBits(dict[str, int]):
    """From a word to the bits of the patterns that may begin with it; words are added as they are asked for."""

    def __init__(self) -> None:
        self.patterns = 0  # that have a bit
        self._whole: dict[str, int] = {}
        self._prefixes: dict[str, dict[str, int]] = {}  # by their first letters, which a lookup finds at once
        self._negated = 0

    def add(self, expressions: Iterable[str]) -> int:
        """The bit of a new pattern: ["wrong", "mistakes?"] has "wrong" and whatever begins with "mistake"."""
        bit = 1 << self.patterns
        self.patterns += 1
        for expression in expressions:
            for word, is_beginning in first_words(expression):
                if word not in _COMMON and _SPACED.fullmatch(word):
                    is_prefix = is_beginning and len(word) >= SHORTEST_BEGINNING
                    known = (
                        self._prefixes.setdefault(word[:SHORTEST_BEGINNING], {}) if is_prefix else self._whole
                    )
                    known[word] = known.get(word, 0) | bit
            if "n[’']" in expression:
                self._negated |= bit
        self.clear()
        return bit

    def __missing__(self, word: str) -> int:
        bare = word.partition("'")[0].partition("’")[0]
        bits = self._whole.get(bare, 0)
        for prefix, prefix_bits in self._prefixes.get(bare[:SHORTEST_BEGINNING], {}).items():
            if bare.startswith(prefix):
                bits |= prefix_bits
        if word.endswith(("n't", "n’t")):
            bits |= self._negated
        if len(self) < CAPACITY and len(word) <= LONGEST_WORD:
            self[word] = bits
        return bits


_word_bits = _WordBits()


def bits_in(text: str) -> int:
    """The bits of all patterns whose words stand in the text."""
    return reduce(or_, map(_word_bits.__getitem__, plain_words(text)), 0)


bits_in_sentence = lru_cache(maxsize=64)(bits_in)  # of a sentence several patterns are tried


@lru_cache(maxsize=64)
def _words_with_bits(sentence: str) -> dict[str, int]:
    return {word: bits for word in plain_words(sentence) if (bits := _word_bits[word])}


class Prefilter:
    """Tells whether a text may hold one of the words that the expressions begin with."""

    def __init__(self, expressions: Iterable[str]) -> None:
        expressions = list(expressions)
        self.bit = _word_bits.add(expressions)
        starts = [word for expression in expressions for word, _ in first_words(expression)]
        letters = sorted({word[0] for word in starts if not _SPACED.match(word)})
        self.letters = re.compile(f"[{''.join(letters)}]" if letters else "(?!)")  # of scripts without spaces

    def may_hold(self, text: str) -> bool:
        if bits_in_sentence(text) & self.bit:
            return True
        return not text.isascii() and self.letters.search(text) is not None


class WordPattern(Prefilter):
    """A pattern whose matches begin with one of the expressions, and is tried only there.

    Where a match may begin with `marks` or other words, the whole text is searched if it holds one of the words.
    """

    def __init__(self, text: str, expressions: Iterable[str], *, marks: bool = False) -> None:
        super().__init__(expressions)
        self._pattern = re.compile(text, re.IGNORECASE)
        self._marks = marks

    def search(self, text: str) -> re.Match[str] | None:
        if not self.may_hold(text):
            return None
        if self._marks:
            return self._pattern.search(text)
        return next(filter(None, (self._pattern.match(text, start) for start in self._starts(text))), None)

    def match(self, text: str) -> re.Match[str] | None:
        return self._pattern.match(text) if self.may_hold(text) else None

    def _starts(self, text: str) -> list[int]:
        """Where one of the words stands, as a word or within another."""
        starts = []
        small = text.lower()
        for word, bits in _words_with_bits(text).items():
            start = small.find(word) if bits & self.bit else -1
            while start >= 0:
                starts.append(start)
                start = small.find(word, start + 1)
        if not text.isascii():
            starts += [letter.start() for letter in self.letters.finditer(text)]
        return sorted(starts)
