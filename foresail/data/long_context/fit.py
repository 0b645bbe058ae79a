"""Prompts of an exact number of tokens.

A task writes its prompt with any number of units of filler (words, lines, entries). The most units that fit are
found by interpolation; the rest, less than a unit, is filled with dots at a place that the task chooses. Tokens are
counted on the whole text, by the model's tokenizer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

Encode = Callable[[str], Sequence[int]]
Write = Callable[[int, str], str]  # the prompt with so many units, and this padding

PADS = (" .", " a", ".", " x", "a")  # most tokenizers have a token for the first
SMALL_GAP = 6  # tokens that padding may fill although another unit would fit
MAX_STEPS_BACK = 8  # units given up when no padding has the right number of tokens
MAX_KNOWN = 200_000  # words whose tokens are remembered
WORDS = re.compile(r" ?\S+|\s")
REACH = 48  # characters on either side within which a tokenizer's cuts may change


class TooShort(ValueError):
    """The parts of a prompt that are no filler have more tokens than were asked for."""


class WordCounts:
    """Estimates the number of tokens much faster than `encode`: every word is encoded once, on its own.

    len(WordCounts(encode)("two words")) -> 2
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._known: dict[str, int] = {}

    def __call__(self, text: str) -> Sequence[int]:
        return range(sum(map(self._count, WORDS.findall(text))))

    def _count(self, word: str) -> int:
        if word not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[word] = len(self._encode(word))
        return self._known[word]


@dataclass(frozen=True, kw_only=True)
class FittedText:
    """A text, its ids, and how many units it has."""

    text: str
    ids: tuple[int, ...]
    units: int


def fit(write: Write, encode: Encode, length: int, *, what: str, each: float) -> FittedText:
    """The text with `length` tokens. `what` is its name in errors, `each` about how many tokens a unit has."""
    shortest = FittedText(text=write(0, ""), ids=tuple(encode(write(0, ""))), units=0)
    if len(shortest.ids) > length:
        raise TooShort(
            f"{what} needs at least {len(shortest.ids)} tokens with this tokenizer, and {length} were asked for"
        )
    longest = most_that_fits(write, encode, length, shortest, each)
    for units in range(longest.units, max(-1, longest.units - MAX_STEPS_BACK), -1):
        gap = length - len(longest.ids if units == longest.units else encode(write(units, "")))
        padding = find_padding(partial(write, units), encode, gap)
        if padding is not None:
            text = write(units, padding)
            ids = tuple(encode(text))
            if len(ids) == length:
                return FittedText(text=text, ids=ids, units=units)
    raise ValueError(
        f"{what} cannot be made {length} tokens long with this tokenizer; try a few tokens more or less"
    )


def most_that_fits(
    write: Write, encode: Encode, length: int, shortest: FittedText, each: float
) -> FittedText:
    """As many units as fit, or so many that only SMALL_GAP tokens are left."""
    best = tried = shortest
    too_many: float = math.inf
    while length - len(best.ids) > SMALL_GAP and too_many - best.units > 1:
        # from above it leads below the limit
        guess = tried.units + math.floor((length - len(tried.ids)) / each)
        guess = int(min(max(guess, best.units + 1), too_many - 1))
        text = write(guess, "")
        tried = FittedText(text=text, ids=tuple(encode(text)), units=guess)
        each = max(0.25, (len(tried.ids) - len(shortest.ids)) / guess)
        if len(tried.ids) <= length:
            best = tried
        else:
            too_many = guess
    return best


def find_padding(write: Callable[[str], str], encode: Encode, gap: int) -> str | None:
    """Dots that take `gap` tokens where `write` puts them; None: there are none."""
    before, after = cut_around(write)
    padding, bare = "", len(encode(before + after))
    while (remaining := gap - (len(encode(before + padding + after)) - bare)) > 0:
        for pad in PADS:
            pad_tokens = len(encode(before + padding + pad + after)) - bare
            if gap - remaining < pad_tokens <= gap:
                padding += pad
                break
        else:
            return None
    return padding if remaining == 0 else None


def cut_around(write: Callable[[str], str]) -> tuple[str, str]:
    """The text near the padding, so that only a short text is encoded for each attempt."""
    mark = "\x00"
    before, _, after = write(mark).partition(mark)
    return before[-REACH:], after[:REACH]
