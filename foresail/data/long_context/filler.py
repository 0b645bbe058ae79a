"""Filler: the sentences that needles are hidden among.

    made_filler(rng)                     sentences of a small grammar: no corpus needed
    TextFiller(texts)(rng)               those of a corpus, in its order from a random place on

Both are endless. Filler never answers a question: codes, keys and variables are drawn so that they do not occur
in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from random import Random

Filler = Callable[[Random], Iterator[str]]  # sentences, one after another, without end

PEOPLE = (
    "The baker, A painter, The teacher, One of the sailors, The old gardener, Her neighbour, A young clerk"
)
ACTS = "walked past, looked at, thought about, wrote of, pointed to, asked about, stopped near, dreamed of, carried"
THINGS = (
    "the market, a wooden table, the last train, some warm bread, the empty street, a small painting, "
    "the northern gate, an open window, "
    "the school, a pair of shoes, the stone wall, a bag of flour, the morning paper, a quiet room"
)
TIMES = "before noon, after the rain, every Sunday, in the evening, without a word, as usual, that winter"
GRAMMAR = tuple(tuple(part.split(", ")) for part in (PEOPLE, ACTS, THINGS, TIMES))
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def made_filler(rng: Random) -> Iterator[str]:
    """ "The baker walked past the market before noon.", and so on."""
    while True:
        yield " ".join(rng.choice(part) for part in GRAMMAR) + "."


class TextFiller:
    """Sentences of texts in their order, in an endless loop."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.sentences = [sentence for text in texts for sentence in split_sentences(text)]
        if not self.sentences:
            raise ValueError("the filler's texts hold no sentence; give it a corpus with some text")

    def __call__(self, rng: Random) -> Iterator[str]:
        place = rng.randrange(len(self.sentences))
        while True:
            yield self.sentences[place]
            place = (place + 1) % len(self.sentences)


def split_sentences(text: str) -> list[str]:
    """split_sentences("It rained.  We left!") -> ["It rained.", "We left!"]; white space becomes single spaces."""
    parts = SENTENCE_END.split(text)
    return [" ".join(part.split()) for part in parts if part.strip()]
