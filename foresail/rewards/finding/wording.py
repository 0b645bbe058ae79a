"""A pattern that is tried only on texts that hold one of its words: most hold none, and that is told much faster."""

from __future__ import annotations

import re
from functools import lru_cache

LONGEST = 40  # characters of a word whose kind is remembered

_VARIABLE = re.compile(r"\\[wbsWZA]|\[[^\]]*\]|\(\?[^:)]*[:)]|[^\W\d_][?*]")
_RUNS = re.compile(r"[^\W\d_]+")
_PARTS = re.compile(r"[^\W\d_]+(?:[’'][^\W\d_]+)?")
_SPACED = re.compile(r"[^\u0400-\u1dff\u1f00-\u1fff\u2e80-\ud7ff]+")
# Words that only continue a pattern.
_LATER = set(
    "of to that the have been be and on way but from than believe think follow this it a one".split()
)


class Wording:
    """Has the methods of a pattern that are used here. `beginnings` spells the words that its matches begin with."""

    def __init__(self, text: str, beginnings: str) -> None:
        self._pattern = re.compile(text, re.IGNORECASE)
        runs = {run.lower() for run in _RUNS.findall(_VARIABLE.sub("|", beginnings))} - _LATER
        words = sorted(run for run in runs if _SPACED.fullmatch(run))
        long, short = [run for run in words if len(run) > 2], [run for run in words if len(run) < 3]
        begins = rf"(?:{'|'.join(long) or '(?!)'})|(?:{'|'.join(short) or '(?!)'})(?!\w)"
        self._begins = re.compile(begins + (r"|\w*n[’']t(?!\w)" if "n[’']t" in beginnings else ""))
        letters = {run[0] for run in runs} - {word[0] for word in words}
        self._letters = re.compile(f"[{''.join(sorted(letters))}]" if letters else "(?!)")
        self._known = lru_cache(maxsize=1 << 15)(self.begins)

    def begins(self, word: str) -> bool:
        """Whether a match may begin in the word, which is in small letters."""
        return any(map(self._begins.match, _PARTS.findall(word)))

    def may_hold(self, text: str) -> bool:
        if not text.isascii() and self._letters.search(text):
            return True
        known, begins = self._known, self.begins
        return any(known(word) if len(word) <= LONGEST else begins(word) for word in text.lower().split())

    def search(self, text: str) -> re.Match[str] | None:
        return self._pattern.search(text) if self.may_hold(text) else None

    def match(self, text: str) -> re.Match[str] | None:
        return self._pattern.match(text) if self.may_hold(text) else None
