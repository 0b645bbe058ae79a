"""Short texts joined to longer documents, for corpora of sentences: a model learns nothing long from those alone.

join_texts(["It rained.", "We left.", …], characters=(200, 4000), seed=0) -> "It rained. We left. …", …
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from random import Random


def join_texts(
    texts: Iterable[str], *, characters: tuple[int, int], seed: int, separator: str = " "
) -> Iterator[str]:
    """Neighbours in their order, until a document has as many characters as were drawn for it.

    That number is drawn evenly on a logarithmic scale; the last document may have fewer.
    """
    rng = Random(f"join {seed}")
    document: list[str] = []
    size, wanted = 0, draw_size(rng, *characters)
    for text in texts:
        document.append(text)
        size += len(text) + len(separator)
        if size >= wanted:
            yield separator.join(document)
            document, size, wanted = [], 0, draw_size(rng, *characters)
    if document:
        yield separator.join(document)


def draw_size(rng: Random, fewest: int, most: int) -> float:
    return math.exp(rng.uniform(math.log(fewest), math.log(most)))
