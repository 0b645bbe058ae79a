"""Views of a corpus's short or long documents, numbered anew, and mixtures of both.

    LengthView(corpus, longer_than=4096).num_documents
    split_by_length(sources, boundary=4096, long_share=0.6)     # "web" -> "web-short" and "web-long"

Compass-v2 lengthens its context from 4k to 32k on data of which 40 % is under 4k and 60 % between 4k and 32k. Here
these are shares of the tokens. Lengths are those of single documents; one that is longer than a row is cut into
rows. Each corpus keeps its share of the long tokens and of the short ones; the long share of a corpus without long
documents goes to the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from foresail.data.corpus.corpus import Corpus, Documents


class LengthView:
    """Documents with more than `longer_than` tokens and at most `up_to`; None: any number."""

    def __init__(self, corpus: Corpus, *, longer_than: int = 0, up_to: int | None = None) -> None:
        lengths = corpus.lengths(np.arange(corpus.num_documents))
        chosen = lengths > longer_than
        if up_to is not None:
            chosen &= lengths <= up_to
        self.corpus, self.chosen = corpus, np.flatnonzero(chosen)
        self.num_documents, self.num_tokens = len(self.chosen), int(lengths[chosen].sum())

    def lengths(self, documents: np.ndarray) -> np.ndarray:
        return self.corpus.lengths(self.chosen[documents])

    def read(self, document: int, start: int, stop: int) -> np.ndarray:
        return self.corpus.read(int(self.chosen[document]), start, stop)


@dataclass(frozen=True, kw_only=True)
class CorpusSource:
    """Documents of a stage, with a label for metrics; `weight` is their relative share."""

    label: str
    documents: Documents
    weight: float
    epochs: int | None = None


def split_by_length(
    sources: Sequence[CorpusSource], *, boundary: int, long_share: float
) -> list[CorpusSource]:
    """Every source as two, its short documents and its long ones; all long ones together have `long_share`."""
    short = [take(source, "short", 0, boundary) for source in sources]
    long = [take(source, "long", boundary, None) for source in sources]
    by_length: list[CorpusSource] = []
    for kind, some, share in (("at most", short, 1 - long_share), ("more than", long, long_share)):
        nonempty = [source for source in some if source.documents.num_documents]
        if share and not nonempty:
            raise ValueError(
                f"no document of {', '.join(source.label for source in sources)} has {kind} {boundary} tokens; set "
                "stages.long_share to none, or stages.long_from to another length"
            )
        total = sum(source.weight for source in nonempty)
        by_length += [replace(source, weight=share * source.weight / total) for source in nonempty if share]
    return by_length


def take(source: CorpusSource, kind: str, longer_than: int, up_to: int | None) -> CorpusSource:
    assert isinstance(source.documents, Corpus), f"{source.label} is split already"
    view = LengthView(source.documents, longer_than=longer_than, up_to=up_to)
    return replace(source, label=f"{source.label}-{kind}", documents=view)
