"""The training order of a corpus: every document once an epoch, shuffled, packed into rows.

Documents of an epoch have a random order (`permutation.py`). A window of consecutive ones is packed into rows
(`best_fit.py`), which are shuffled again. A row's documents are a pure function of (seed, start of the window, the
row's number), so a resumed run needs no other state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from foresail.data.corpus.best_fit import Stretch, best_fit
from foresail.data.corpus.corpus import Documents
from foresail.data.corpus.permutation import permute

LEAST_DOCUMENTS, LEAST_ROWS = 1024, 64  # of a window, so that little stays empty


class PackedRow(NamedTuple):
    """Stretches of documents of one corpus, by the documents' numbers there."""

    source: str
    stretches: tuple[Stretch, ...]

    @property
    def num_tokens(self) -> int:
        return sum(stretch.stop - stretch.start for stretch in self.stretches)


@dataclass(frozen=True, kw_only=True)
class Window:
    """Rows of the documents from the `start`-th to the `stop`-th that are taken, counted over all epochs."""

    start: int
    stop: int
    rows: Sequence[PackedRow]


class Windows:
    """The windows of one corpus at one row length, packed on demand; the last one is cached."""

    def __init__(self, name: str, corpus: Documents, *, length: int, seed: int) -> None:
        self.name, self.corpus, self.length, self.seed = name, corpus, length, seed
        mean = corpus.num_tokens / corpus.num_documents
        self.size = max(LEAST_DOCUMENTS, int(LEAST_ROWS * length / mean) + 1)
        self._last: Window | None = None

    def at(self, start: int) -> Window:
        """The window that begins there. It ends with its epoch at the latest."""
        if self._last is None or self._last.start != start:
            self._last = self._pack(start)
        return self._last

    def _pack(self, start: int) -> Window:
        count = self.corpus.num_documents
        epoch, first = divmod(start, count)
        last = min(first + self.size, count)
        documents = permute(np.arange(first, last), count, self.seed, self.name, epoch)
        packed = best_fit(self.corpus.lengths(documents), self.length)
        order = permute(np.arange(len(packed)), len(packed), self.seed, self.name, "rows", start)
        rows = [
            PackedRow(
                self.name, tuple(s._replace(document=int(documents[s.document])) for s in packed[number])
            )
            for number in order
        ]
        return Window(start=start, stop=start + last - first, rows=rows)


class CorpusPlace(NamedTuple):
    """A position in a corpus: in the window that begins at `document`, after `rows` of its rows."""

    document: int = 0
    row: int = 0
