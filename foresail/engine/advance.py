"""Decides which of the sampled tokens each row keeps, and which rows end.

A row keeps the token sampled at its first entry. If that equals the first drafted token, the token sampled at that
draft's entry is kept too, and so on. Since the noise is keyed by position, plain decoding would sample the same
tokens.

Legend: E entries, R rows, N tokens kept, K MTP layers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.engine.entries import Entries
from foresail.engine.table import Table

GOES_ON, STOPPED, AT_LIMIT, BROKEN = range(4)  # a row's status after a step


@dataclass(frozen=True)
class SampledTokens:
    """The tokens of one step. At a row's first entry: its number of kept tokens, and its status.

    `ahead_RK`: MTP layers' drafts for each row's next step, if they were asked.
    """

    tokens_E: np.ndarray
    logprobs_E: np.ndarray
    counts_E: np.ndarray
    ends_E: np.ndarray
    ahead_RK: np.ndarray | None = None

    @staticmethod
    def of(block_4E: np.ndarray) -> SampledTokens:
        """From the device's int32 block with the log-probabilities' bits, and MTP layers' drafts below."""
        tokens_E, bits_E, counts_E, ends_E = block_4E[:4]
        ahead_RK = block_4E[4:].T if len(block_4E) > 4 else None
        return SampledTokens(tokens_E, bits_E.view(np.float32), counts_E, ends_E, ahead_RK)

    def places(self, firsts_R: np.ndarray) -> np.ndarray:
        """The entries of these rows' kept tokens, row after row."""
        counts_R = self.counts_E[firsts_R]
        within_N = np.arange(counts_R.sum()) - np.repeat(counts_R.cumsum() - counts_R, counts_R)
        return np.repeat(firsts_R, counts_R) + within_N


def advance(table: Table, entries: Entries, tokens_E: np.ndarray, logprobs_E: np.ndarray) -> SampledTokens:
    """Decide which tokens are kept, and which rows end; the table is only read."""
    ends_E = judge(table, entries.slots_E, tokens_E, logprobs_E, sampled_E=1 + entries.offsets_E)
    if not entries.offsets_E.any():
        return SampledTokens(tokens_E, logprobs_E, np.ones_like(tokens_E), ends_E)
    stands_E = entries.offsets_E == 0
    firsts_R = np.flatnonzero(stands_E)
    stands_E[1:] |= (entries.drafts_E[1:] == tokens_E[:-1]) & (ends_E[:-1] == GOES_ON)
    # of each row the entries before the first wrong draft
    failed_E = np.where(stands_E, len(entries), entries.offsets_E)
    sizes_R = np.diff(firsts_R, append=len(entries))
    counts_R = np.minimum(sizes_R, np.minimum.reduceat(failed_E, firsts_R))
    accepted = SampledTokens(tokens_E, logprobs_E, np.zeros_like(tokens_E), np.zeros_like(ends_E))
    accepted.counts_E[firsts_R], accepted.ends_E[firsts_R] = counts_R, ends_E[firsts_R + counts_R - 1]
    return accepted


def judge(
    table: Table, slots_E: np.ndarray, tokens_E: np.ndarray, logprobs_E: np.ndarray, sampled_E: np.ndarray
) -> np.ndarray:
    """The row's status after each token, the `sampled_E`-th of this step."""
    ends_E = np.where(sampled_E >= table.left_S[slots_E], AT_LIMIT, GOES_ON)
    ends_E[(table.stops_SX[slots_E] == tokens_E[:, None]).any(1)] = STOPPED
    ends_E[np.isnan(logprobs_E)] = BROKEN
    return ends_E
