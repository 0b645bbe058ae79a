"""Patterns that are tried only on texts that hold one of their words: most hold none, and that is told much faster.

Each pattern spells the words that its matches begin with. All patterns share one dictionary, from a word to the
patterns that know it as the bits of an integer, so one look at each word of a text tells what is worth trying.
"""

from __future__ import annotations

import re
from functools import lru_cache, reduce
from operator import or_

LONGEST = 40  # characters of a word that is remembered
MOST = 1 << 16  # words that are

_VARIABLE = re.compile(r"\\[wbsWZA]|\[[^\]]*\]|\(\?[^:)]*[:)]|[^\W\d_][?*]")
_RUNS = re.compile(r"([^\W\d_]+)(~?)")
_PARTS = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)?")
_SPACED = re.compile(r"[^\u0400-\u1dff\u1f00-\u1fff\u2e80-\ud7ff]+")
UNSPACED = re.compile(
    r"[\u0400-\u1dff\u1f00-\u1fff\u2e80-\ud7ff\uf900-\ufaff]"
)  # where words are not told apart
# Words that only continue a pattern.
_LATER = set(
    "of to that the have been be and on way but from than believe think follow this it a one".split()
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


class _Lexicon(dict[str, int]):
    """From a word to the bits of the patterns that may begin with it; words are added as they are asked for."""

    def __init__(self) -> None:
        self.bits = 0  # patterns so far
        self._whole: dict[str, int] = {}
        self._begun: dict[str, int] = {}
        self._all_begun: tuple[str, ...] = ()
        self._negated = 0

    def add(self, spelled: str) -> int:
        """The bit of a new pattern: "wrong|mistake[ns]?" knows "wrong" and whatever begins with "mistake"."""
        bit = 1 << self.bits
        self.bits += 1
        fixed = _VARIABLE.sub("~", spelled.replace("n[’']t", "|").replace("n[’']?t", "|"))
        for run, varies in _RUNS.findall(fixed):
            word = run.lower()
            if word not in _LATER and _SPACED.fullmatch(word):
                known = self._begun if varies and len(word) > 2 else self._whole
                known[word] = known.get(word, 0) | bit
        if "n[’']" in spelled:
            self._negated |= bit
        self._all_begun = tuple(self._begun)
        self.clear()
        return bit

    def __missing__(self, word: str) -> int:
        bare = word.partition("'")[0].partition("’")[0]
        kinds = self._whole.get(bare, 0)
        if bare.startswith(self._all_begun):
            kinds |= reduce(or_, (bit for start, bit in self._begun.items() if bare.startswith(start)))
        if word.endswith(("n't", "n’t")):
            kinds |= self._negated
        if len(self) < MOST and len(word) <= LONGEST:
            self[word] = kinds
        return kinds


_lexicon = _Lexicon()


def kinds_in(text: str) -> int:
    """The bits of all patterns whose words stand in the text."""
    return reduce(or_, map(_lexicon.__getitem__, plain_words(text)), 0)


kinds_in_sentence = lru_cache(maxsize=64)(kinds_in)  # of which several patterns are tried


class Hint:
    """Tells whether a text may hold one of the words that `spelled` spells."""

    def __init__(self, spelled: str) -> None:
        self.bit = _lexicon.add(spelled)
        runs = [run for run, _ in _RUNS.findall(_VARIABLE.sub("~", spelled))]
        letters = sorted({run[0] for run in runs if not _SPACED.match(run)})
        self.letters = re.compile(f"[{''.join(letters)}]" if letters else "(?!)")  # of scripts without spaces

    def may_hold(self, text: str) -> bool:
        if kinds_in_sentence(text) & self.bit:
            return True
        return not text.isascii() and self.letters.search(text) is not None


class Wording(Hint):
    """Has the methods of a pattern that are used here. `spelled` spells the words that its matches begin with.

    Where `marks` or other words may stand before those, the whole text is searched as soon as it holds one of them.
    """

    def __init__(self, text: str, spelled: str, *, marks: bool = False) -> None:
        super().__init__(spelled)
        self._pattern = re.compile(text, re.IGNORECASE)
        self._marks = marks

    def search(self, text: str) -> re.Match[str] | None:
        if not self.may_hold(text):
            return None
        if self._marks:
            return self._pattern.search(text)
        return next(
            (match for place in self._places(text) if (match := self._pattern.match(text, place))), None
        )

    def match(self, text: str) -> re.Match[str] | None:
        return self._pattern.match(text) if self.may_hold(text) else None

    def _places(self, text: str) -> list[int]:
        """Where one of the words stands, as a word or within another."""
        places = []
        small = text.lower()
        for word in {word for word in plain_words(text) if _lexicon[word] & self.bit}:
            place = small.find(word)
            while place >= 0:
                places.append(place)
                place = small.find(word, place + 1)
        if not text.isascii():
            places += [letter.start() for letter in self.letters.finditer(text)]
        return sorted(places)
