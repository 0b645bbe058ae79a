"""Needles in filler, each at its depth: needle in a haystack, and RULER's variable tracking.

Needles stand between sentences. Depth is counted in words of filler: at 0.5 as many stand before the needle as
behind it, up to half a sentence.
"""

from __future__ import annotations

import string
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from random import Random

from foresail.data.long_context.filler import Filler
from foresail.data.long_context.fit import Encode, fit
from foresail.data.long_context.item import Item, join
from foresail.data.long_context.words import draw_codes, draw_keys, draw_letters

WORD_TOKENS = 1.5
Needle = tuple[float, str]  # depth and text
Draw = Callable[[Random], list[str]]


class Hay:
    """The filler of one item, drawn on demand and cached."""

    def __init__(self, sentences: Iterator[str]) -> None:
        self._source = sentences
        self._sentences: list[list[str]] = []
        self._size = 0

    def words(self, count: int) -> list[list[str]]:
        """The first `count` words, sentence by sentence; the last one may be cut short."""
        while self._size < count:
            self._sentences.append(next(self._source).split(" "))
            self._size += len(self._sentences[-1])
        cut_sentences: list[list[str]] = []
        for sentence in self._sentences:
            if count <= 0:
                break
            cut_sentences.append(sentence[:count])
            count -= len(sentence)
        return cut_sentences

    def text(self) -> str:
        """All that was drawn so far."""
        return " ".join(" ".join(sentence) for sentence in self._sentences)


def bury(hay: Hay, needles: Sequence[Needle], count: int, padding: str = "") -> str:
    """`count` words of filler with the needles among them; those of equal depth keep their order."""
    sentences = [*hay.words(count)]
    ends = [0, *accumulate(len(sentence) for sentence in sentences)]
    before: list[list[str]] = [[] for _ in ends]
    for depth, text in sorted(needles, key=lambda needle: needle[0]):
        before[nearest(ends, depth * count)].append(text)
    pieces: list[str] = []
    for texts, sentence in zip(before, [*sentences, []], strict=True):
        pieces += [*texts, *sentence]
    return " ".join(pieces) + padding


def nearest(ends: Sequence[int], place: float) -> int:
    """nearest([0, 9, 20], 13.2) -> 1: the sentence boundary that is nearest to a word's number."""
    right = min(bisect_left(ends, place), len(ends) - 1)
    return right - 1 if right and place - ends[right - 1] <= ends[right] - place else right


def draw_unseen(rng: Random, hay: Hay, draw: Draw, *, words: int) -> list[str]:
    """The strings of `draw`, drawn again while one of them occurs in the first `words` words of filler."""
    hay.words(words)
    text, drawn = hay.text(), draw(rng)
    while any(string in text for string in drawn):
        drawn = draw(rng)
    return drawn


# Needle in a haystack.

NIAH_INTRO = "Access codes are hidden in this text. Remember them.\n\n"


def niah(
    task: str,
    rng: Random,
    length: int,
    depth: float,
    encode: Encode,
    filler: Filler,
    *,
    keys: int = 1,
    values: int = 1,
    queries: int = 1,
) -> Item:
    """`keys` keys with `values` codes each are in the text, and the first `queries` keys are asked for.

    One of the codes asked for is at `depth`; all others are anywhere.
    """
    hay = Hay(filler(rng))
    drawn = draw_unseen(
        rng, hay, lambda rng: [*draw_keys(rng, keys), *draw_codes(rng, keys * values)], words=length
    )
    names, codes = drawn[:keys], drawn[keys:]
    depths = [depth, *(rng.random() for _ in codes[1:])]
    owners = [name for name in names for _ in range(values)]
    needles = [
        (place, f"The access code of {name} is {code}.")
        for place, name, code in zip(depths, owners, codes, strict=True)
    ]
    asked_keys = names[:queries]
    subject = " and ".join(asked_keys)
    many = "s" if queries * values > 1 else ""
    verb = "are" if many else "is"
    question = (
        f"\n\nWhat {verb} the access code{many} of {subject}?\nThe access code{many} of {subject} {verb}"
    )

    def write(count: int, padding: str) -> str:
        return NIAH_INTRO + bury(hay, needles, count, padding) + question

    fitted = fit(write, encode, length, what=task, each=WORD_TOKENS)
    # of one key in the order of the text; of several keys as they were asked for
    order = sorted(range(values), key=depths.__getitem__) if queries == 1 else range(queries * values)
    answers = tuple(codes[number] for number in order)
    return Item(
        task=task, prompt=fitted.text, ids=fitted.ids, answers=answers, solution=join(answers), depth=depth
    )


# Variable tracking.

VT_INTRO = "Variables are assigned in this text. Keep track of them.\n\n"
NAME_LENGTH, VALUE_DIGITS = 5, 5


def variable_tracking(
    rng: Random, length: int, encode: Encode, filler: Filler, *, chains: int = 1, hops: int = 4
) -> Item:
    """Chains X1 = value, X2 = X1, …, X5 = X4 over the text: which variables have the value?"""
    hay = Hay(filler(rng))
    drawn = draw_unseen(
        rng,
        hay,
        lambda rng: [
            *draw_letters(rng, chains * (hops + 1), length=NAME_LENGTH, alphabet=string.ascii_uppercase),
            *draw_codes(rng, chains, digits=VALUE_DIGITS),
        ],
        words=length,
    )
    names, values = drawn[:-chains], drawn[-chains:]
    needles: list[Needle] = []
    for number, value in enumerate(values):
        chain = names[number * (hops + 1) : (number + 1) * (hops + 1)]
        sources = [value, *(f"VAR {name}" for name in chain)]
        depths = sorted(rng.random() for _ in chain)
        needles += [
            (depth, f"VAR {name} = {source}.")
            for depth, name, source in zip(depths, chain, sources, strict=False)
        ]
    question = (
        f"\n\nWhich variables have the value {values[0]}?\nThe variables with the value {values[0]} are"
    )

    def write(count: int, padding: str) -> str:
        return VT_INTRO + bury(hay, needles, count, padding) + question

    fitted = fit(write, encode, length, what="vt", each=WORD_TOKENS)
    answers = tuple(names[: hops + 1])
    return Item(
        task="vt", prompt=fitted.text, ids=fitted.ids, answers=answers, solution=join(answers), depth=None
    )
