"""From the tokens drawn at every entry to what each row keeps of them.

A row keeps the token drawn at its root. If that is one of the drafted tokens that follow, the token drawn
there stands as well, and so on: since the noise is keyed by position, these are the very tokens that plain
decoding would have drawn.

Legend: E entries, R rows, N tokens kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from foresail.engine.entries import Entries
from foresail.engine.table import Table

GOES_ON, STOPPED, AT_LIMIT, BROKEN = range(4)  # how a row stands after a step


@dataclass(frozen=True)
class Drawn:
    """What one step drew. A row's kept tokens stand at its first entries; `counts_E`, `ends_E` at its root."""

    tokens_E: np.ndarray
    logprobs_E: np.ndarray
    nodes_E: np.ndarray  # where each was drawn
    counts_E: np.ndarray
    ends_E: np.ndarray

    @staticmethod
    def of(block_5E: np.ndarray) -> Drawn:
        """From the device's int32 block, which holds the log-probabilities' bits."""
        tokens_E, bits_E, nodes_E, counts_E, ends_E = block_5E
        return Drawn(tokens_E, bits_E.view(np.float32), nodes_E, counts_E, ends_E)

    def places(self, roots_R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of these rows' kept tokens, one row after the other: where they stand, and the how-manieth each is."""
        counts_R = self.counts_E[roots_R]
        within_N = np.arange(counts_R.sum()) - np.repeat(counts_R.cumsum() - counts_R, counts_R)
        return np.repeat(roots_R, counts_R) + within_N, within_N


def advance(table: Table, entries: Entries, tokens_E: np.ndarray, logprobs_E: np.ndarray) -> Drawn:
    """Which tokens stand, and which rows end with them; the table is only read."""
    ends_E = judge(table, entries.slots_E, tokens_E, logprobs_E, drawn_E=1 + entries.depths_E)
    if not entries.nodes_E.any():
        return Drawn(tokens_E, logprobs_E, entries.nodes_E, np.ones_like(tokens_E), ends_E)
    kept = Drawn(*(np.zeros_like(column) for column in (tokens_E, logprobs_E, tokens_E, tokens_E, ends_E)))
    roots = [*np.flatnonzero(entries.nodes_E == 0).tolist(), len(entries)]
    for root, end in pairwise(roots):
        path = walk(root, end, entries, tokens_E, ends_E)
        places = slice(root, root + len(path))
        kept.tokens_E[places], kept.logprobs_E[places] = tokens_E[path], logprobs_E[path]
        kept.nodes_E[places], kept.counts_E[root] = np.array(path) - root, len(path)
        kept.ends_E[root] = ends_E[path[-1]]
    return kept


def judge(
    table: Table, slots_E: np.ndarray, tokens_E: np.ndarray, logprobs_E: np.ndarray, drawn_E: np.ndarray
) -> np.ndarray:
    """How its row would stand after each token, the `drawn_E`-th of this step."""
    ends_E = np.where(drawn_E >= table.left_S[slots_E], AT_LIMIT, GOES_ON)
    ends_E[(table.stops_SX[slots_E] == tokens_E[:, None]).any(1)] = STOPPED
    ends_E[np.isnan(logprobs_E)] = BROKEN
    return ends_E


def walk(root: int, end: int, entries: Entries, tokens_E: np.ndarray, ends_E: np.ndarray) -> list[int]:
    """The entries from the root along drafted tokens that were drawn."""
    path, place = [root], root
    while ends_E[place] == GOES_ON:
        children = (
            child
            for child in range(root + 1, end)
            if entries.parents_E[child] == place - root and entries.drafts_E[child] == tokens_E[place]
        )
        following = next(children, None)
        if following is None:
            break
        path.append(following)
        place = following
    return path
