"""A short text that must name some things, must not name others, and has a limit of length.

    check = {"contains": ["Velmora", "blue"], "excludes": ["red"], "max_words": 8}
    constrained("Velmora shirt blue", check)("Blue shirt by Velmora")     True

A term counts where it stands alone: red is not named by "covered", and M not by "Makeup"; in scripts without spaces
anywhere. Whether the text reads well is not checked.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from foresail.rewards.structured.final_answer import normalise

KEYS = ("contains", "excludes", "max_words", "max_chars")


def constrained(answer: str, check: Mapping[str, Any]) -> Callable[[str], bool]:
    contains = [normalise(str(term)) for term in check.get("contains") or ()]
    excludes = [normalise(str(term)) for term in check.get("excludes") or ()]
    words, characters = check.get("max_words"), check.get("max_chars")
    if not contains and not excludes and words is None and characters is None:
        raise ValueError(f"check has none of {', '.join(KEYS)}")

    def compare(text: str) -> bool:
        plain = normalise(text)
        return (
            all(names(plain, term) for term in contains)
            and not any(names(plain, term) for term in excludes)
            and (words is None or len(plain.split()) <= int(words))
            and (characters is None or len(plain) <= int(characters))
        )

    if not compare(answer):
        raise ValueError(f"the answer {answer!r} does not meet its own constraints")
    return compare


def names(text: str, term: str) -> bool:
    """Whether a term stands in a text, both normalised."""
    start = text.find(term) if term else -1
    while start >= 0:
        end = start + len(term)
        if is_apart(text[start - 1 : start], term[0]) and is_apart(term[-1], text[end : end + 1]):
            return True
        start = text.find(term, start + 1)
    return False


def is_apart(one: str, other: str) -> bool:
    """Whether two neighbouring characters belong to two words."""
    return not (one and other and in_word(one) and in_word(other))


def in_word(letter: str) -> bool:
    """Letters and digits of scripts with spaces between words; not of Thai, Chinese, Japanese, Khmer, Lao."""
    if letter.isascii():
        return letter.isalnum()
    if not unicodedata.category(letter).startswith(("L", "M", "N")):
        return False
    return not unicodedata.name(letter, "").startswith(
        ("THAI", "CJK", "HIRAGANA", "KATAKANA", "KHMER", "LAO", "MYANMAR")
    )
