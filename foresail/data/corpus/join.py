"""Joins short texts to longer documents: from single sentences a model learns no long contexts.

join_texts(["It rained.", "We left.", …], characters=(200, 4000), seed=0) -> "It rained. We left. …", …
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from random import Random

NEIGHBOURS = 1000  # texts in a row that all go into short documents, or all into long ones


def join_texts(
    texts: Iterable[str], *, characters: tuple[int, int], seed: int, separator: str = " "
) -> Iterator[str]:
    """Neighbours in their order, until a document has as many characters as were drawn for it.

    That number is drawn evenly on a logarithmic scale; the last document may have fewer.
    """
    rng = Random(f"join {seed}")
    document: list[str] = []
    size, enough = 0, draw_size(rng, *characters)
    for text in texts:
        document.append(text)
        size += len(text) + len(separator)
        if size >= enough:
            yield separator.join(document)
            document, size, enough = [], 0, draw_size(rng, *characters)
    if document:
        yield separator.join(document)


def join_short_and_long(
    texts: Sequence[str], *, short: tuple[int, int], long: tuple[int, int], seed: int
) -> Iterator[str]:
    """Half of the texts in short documents, half in long ones, whatever languages or sources follow one another.

    With one wide range of sizes, few texts would end up in short documents, and a model that draws 40 % of its
    tokens from them, as Compass-v2 did, would memorise them.
    """
    for size, which in ((short, 0), (long, 1)):
        some = [text for number, text in enumerate(texts) if number // NEIGHBOURS % 2 == which]
        yield from join_texts(some, characters=size, seed=seed)


def draw_size(rng: Random, smallest: int, largest: int) -> float:
    return math.exp(rng.uniform(math.log(smallest), math.log(largest)))
