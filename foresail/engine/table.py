"""The table of running rows as arrays on the host, so that a decode step has no Python per token.

The CPU runner reads them directly; the CUDA runner has a copy on the device.

Legend: S slots, P pages per row, L tokens sampled per row, X stop ids per row, R rows, N tokens sampled.
"""

from __future__ import annotations

import numpy as np

from foresail.engine.request import MAX_STOPS, Request

NO_ID = -1  # fills the rows of a table of token ids


class Table:
    """One line per slot: the row's last token, its length, its limits and its pages."""

    def __init__(self, num_slots: int, num_columns: int) -> None:
        def integers(*size: int) -> np.ndarray:
            return np.zeros((num_slots, *size), dtype=np.int64)

        self.last_S, self.lengths_S, self.left_S, self.keys_S = (integers() for _ in range(4))
        self.reuses_S = integers()  # number of rows that the slot has had: distinguishes them
        self.versions_S = integers()  # of the weights that sample in the slot
        self.num_pages_S, self.sampled_S = integers(), integers()
        self.groups_S, self.shared_S = integers(), integers()  # rows of a group share that many cached tokens
        self.temperature_S, self.top_p_S, self.min_p_S = np.ones((3, num_slots), dtype=np.float32)
        self.top_k_S = integers()
        self.stop_states_S = integers()  # the state of its stop strings, which only the host finds
        self.stops_SX = np.full((num_slots, MAX_STOPS), NO_ID, dtype=np.int64)
        self.pages_SP = np.zeros((num_slots, num_columns), dtype=np.int32)
        self.tokens_SL = np.zeros((num_slots, 64), dtype=np.int64)
        self.logprobs_SL = np.zeros((num_slots, 64), dtype=np.float32)

    def assign(self, slot: int, request: Request, ids: tuple[int, ...], pages: list[int], limit: int) -> None:
        """Put a request into an empty slot: all but the last of `ids` are cached in `pages`."""
        self.last_S[slot], self.lengths_S[slot], self.left_S[slot] = ids[-1], len(ids), limit
        self.keys_S[slot], self.sampled_S[slot] = request.key, 0
        sampling = request.sampling
        self.temperature_S[slot], self.top_k_S[slot] = sampling.temperature, sampling.top_k
        self.top_p_S[slot], self.min_p_S[slot] = sampling.top_p, sampling.min_p
        self.stops_SX[slot] = NO_ID
        self.stops_SX[slot, : len(request.stop_ids)] = request.stop_ids
        self.num_pages_S[slot] = len(pages)
        self.pages_SP[slot, : len(pages)] = pages
        self.groups_S[slot] = self.shared_S[slot] = 0
        self._widen(limit)

    def renew(self, slot: int, limit: int) -> None:
        """Set how many more tokens the row may sample."""
        self.left_S[slot] = limit
        self._widen(int(self.sampled_S[slot]) + limit)

    def join(self, slot: int, group: int, shared: int) -> None:
        """The row's first `shared` tokens are cached in the same pages as those of all rows of the group."""
        self.groups_S[slot], self.shared_S[slot] = group, shared

    def add_pages(self, slots: np.ndarray, pages: list[int]) -> np.ndarray:
        """Add a page for each of these rows, which may be repeated; returns the pages' columns."""
        order = np.arange(len(slots)) - np.searchsorted(slots, slots)  # index within its row
        columns = self.num_pages_S[slots] + order
        self.pages_SP[slots, columns] = pages
        np.add.at(self.num_pages_S, slots, 1)
        return columns

    def record(
        self, slots_R: np.ndarray, counts_R: np.ndarray, tokens_N: np.ndarray, logprobs_N: np.ndarray
    ) -> None:
        """Record the rows' sampled tokens, `counts_R` each, row after row."""
        rows_N = np.repeat(slots_R, counts_R)
        within_N = np.arange(len(rows_N)) - np.repeat(counts_R.cumsum() - counts_R, counts_R)
        columns_N = self.sampled_S[rows_N] + within_N
        self.tokens_SL[rows_N, columns_N] = tokens_N
        self.logprobs_SL[rows_N, columns_N] = logprobs_N
        self.sampled_S[slots_R] += counts_R
        self.last_S[slots_R] = tokens_N[counts_R.cumsum() - 1]

    def move(self, slots_R: np.ndarray, counts_R: np.ndarray | int) -> None:
        """Count `counts_R` sampled tokens, perhaps of a launched step."""
        self.lengths_S[slots_R] += counts_R
        self.left_S[slots_R] -= counts_R

    def sampled(self, slot: int, first: int = 0) -> tuple[list[int], list[float]]:
        """Tokens and log-probabilities recorded in this slot since it was assigned, from the `first` on."""
        count = self.sampled_S[slot]
        return self.tokens_SL[slot, first:count].tolist(), self.logprobs_SL[slot, first:count].tolist()

    def truncates(self, slots: np.ndarray) -> bool:
        """Whether any of these rows uses top-k, top-p or min-p."""
        return bool(
            (self.top_k_S[slots] > 0).any()
            or (self.top_p_S[slots] < 1).any()
            or (self.min_p_S[slots] > 0).any()
        )

    def _widen(self, width: int) -> None:
        """Make room for `width` sampled tokens per row, by doubling."""
        if width <= self.tokens_SL.shape[1]:
            return
        more = max(width, 2 * self.tokens_SL.shape[1]) - self.tokens_SL.shape[1]
        self.tokens_SL = np.pad(self.tokens_SL, ((0, 0), (0, more)))
        self.logprobs_SL = np.pad(self.logprobs_SL, ((0, 0), (0, more)))
