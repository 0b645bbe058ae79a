r"""The words that readers of answers know, by meaning and language: a file per language, a line per meaning.

    denial: nicht | keine?[nrms]? | niemals         in german.txt

A word is a regular expression that begins with letters, or with a group of such beginnings: `(?:pense|crois) pas`.
A line that begins with blanks continues the one before.

To add a language, add a file here with a line for each meaning it has words for; english.txt says what each meaning
is. A script without blanks between words has a line "unspaced: yes": its words count anywhere, those of others only
as whole words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_CONTEXT = re.compile(r"(?:\(\?<[!=][^()]*\))+")  # a condition on what stands before: `(?<!\bif )not`
_GROUP = re.compile(r"\(\?(?:-i)?:([^()]*)\)")
_LETTERS = re.compile(r"[^\W\d_]+")
_MORE_LETTERS = re.compile(r"[?*]|\[(?![’'])|\(\?:|\\w")


class LexiconRow(NamedTuple):
    """`is_spaced`: the language puts blanks between words."""

    meaning: str
    language: str
    word: str
    is_spaced: bool


def read_language(path: Path) -> Iterator[LexiconRow]:
    lines = path.read_text(encoding="utf-8").replace("\n    |", " |").splitlines()
    meanings = [line.split(": ", 1) for line in lines if not line.startswith("#")]
    is_spaced = ["unspaced", "yes"] not in meanings
    for meaning, alternatives in meanings:
        for word in alternatives.split(" | "):
            yield LexiconRow(meaning, path.stem, word, is_spaced)


TABLE = tuple(row for path in sorted(Path(__file__).parent.glob("*.txt")) for row in read_language(path))
BY_MEANING: dict[str, list[LexiconRow]] = {}
for _row in TABLE:
    BY_MEANING.setdefault(_row.meaning, []).append(_row)


def rows(*meanings: str) -> list[LexiconRow]:
    return [row for meaning in meanings for row in BY_MEANING[meaning]]


def words_for(*meanings: str) -> list[str]:
    """words_for("one") -> ["ein", "satu", "una", …], of all languages."""
    return [row.word for row in rows(*meanings)]


def spaced(*meanings: str) -> str:
    """The words of scripts with blanks between words: spaced("also") -> "also|aussi|auch|…"."""
    return "|".join(row.word for row in rows(*meanings) if row.is_spaced)


def unspaced(*meanings: str) -> str:
    """The words of scripts without blanks: unspaced("also") -> "也|また|…"."""
    return "|".join(row.word for row in rows(*meanings) if not row.is_spaced)


def pattern(*meanings: str) -> str:
    r"""A pattern of all their words: pattern("also") -> `(?:\b(?:also|aussi|…)(?!\w)|也|…)`."""
    whole_words = rf"\b(?:{spaced(*meanings)})(?!\w)"
    return f"(?:{whole_words}|{anywhere})" if (anywhere := unspaced(*meanings)) else f"(?:{whole_words})"


def compiled(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


def first_words(word: str) -> Iterator[tuple[str, bool]]:
    """What a row begins with, and whether more letters may follow.

    first_words("(?:pense|crois) pas") -> ("pense", False), ("crois", False)
    first_words("fails?") -> ("fail", True)
    """
    bare = _CONTEXT.sub("", word)
    group = _GROUP.match(bare)
    for start in group[1].split("|") if group else [bare]:
        if letters := _LETTERS.match(start):
            more = _MORE_LETTERS.match(start, letters.end())
            is_last_optional = more is not None and more[0] in "?*"
            yield letters[0][: -1 if is_last_optional else None].lower(), more is not None
