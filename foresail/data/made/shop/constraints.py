"""Constraints on a short text: what it must name, what it must not name, how long it may be."""

from __future__ import annotations

from typing import Any

from foresail.data.made.shop.cards import Scene
from foresail.data.made.shop.language import empty_values
from foresail.data.made.shop.table import Offer

SPARE_WORDS, SPARE_CHARS = 4, 12
SHORTEST = 2  # characters of a value that says something by itself: 8 and M do not


def speaking_options(offer: Offer) -> list[tuple[str, str]]:
    """Options whose values say something without their attribute's name."""
    return [
        (name, value)
        for name, value in offer.variant.options
        if value.casefold() not in empty_values()
        and (not value.isascii() or (len(value) >= SHORTEST and not value.isdigit()))
    ]


def mentions(text: str, term: str) -> bool:
    return term.casefold() in text.casefold()


def length_limit(scene: Scene, answer: str) -> tuple[dict[str, Any], str]:
    """Words, or characters in a script without spaces; somewhat more than the answer needs."""
    if scene.language.words["spaces"]:
        words = len(answer.split()) + SPARE_WORDS
        return {"max_words": words}, str(words)
    characters = len(answer) + SPARE_CHARS
    return {"max_chars": characters}, str(characters)
