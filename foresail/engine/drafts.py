"""Drafted tokens, which a decode step checks.

Legend: R rows with a draft, K places of a draft, S slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from foresail.engine.table import Table

MAX_DRAFT = 16  # tokens
UNREAD = -1  # in a draft: the MTP layers' last token for the row, which is only on the device


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The draft of one row: Draft(tokens=(5, 9, 2))."""

    tokens: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.tokens) > MAX_DRAFT:
            raise ValueError(f"a draft of {len(self.tokens)} tokens; the most is {MAX_DRAFT}: cut it")


@dataclass(frozen=True, kw_only=True)
class Drafts:
    """Drafts of many rows as arrays: the first sizes_R tokens of each line."""

    slots_R: np.ndarray
    sizes_R: np.ndarray
    tokens_RK: np.ndarray

    @staticmethod
    def of(drafts: Mapping[int, Draft]) -> Drafts:
        """From records, by slot: Drafts.of({3: Draft(tokens=(5, 9))})."""
        tokens_RK = np.zeros((len(drafts), MAX_DRAFT), dtype=np.int64)
        for line_K, draft in zip(tokens_RK, drafts.values(), strict=True):
            line_K[: len(draft.tokens)] = draft.tokens
        return Drafts(
            slots_R=np.array(list(drafts), dtype=np.int64),
            sizes_R=np.array([len(draft.tokens) for draft in drafts.values()], dtype=np.int64),
            tokens_RK=tokens_RK,
        )

    @staticmethod
    def unread(slots_R: np.ndarray, size: int) -> Drafts:
        """The MTP layers' drafts of `size` tokens for these rows, unread."""
        return Drafts(
            slots_R=slots_R,
            sizes_R=np.full(len(slots_R), size, dtype=np.int64),
            tokens_RK=np.full((len(slots_R), MAX_DRAFT), UNREAD, dtype=np.int64),
        )

    @cached_property
    def is_unread(self) -> bool:
        return bool((self.tokens_RK == UNREAD).all())

    def lines_of(self, slots: np.ndarray) -> np.ndarray:
        """The lines of these slots; -1 for those without a draft."""
        lines_S = np.full(max(slots.max(initial=-1), self.slots_R.max(initial=-1)) + 1, -1)
        lines_S[self.slots_R] = np.arange(len(self.slots_R))
        return lines_S[slots]

    def sizes_of(self, slots: np.ndarray) -> np.ndarray:
        sizes_S = np.zeros(max(slots.max(initial=-1), self.slots_R.max(initial=-1)) + 1, dtype=np.int64)
        sizes_S[self.slots_R] = self.sizes_R
        return sizes_S[slots]

    def only(self, rows_R: np.ndarray) -> Drafts:
        return Drafts(
            slots_R=self.slots_R[rows_R], sizes_R=self.sizes_R[rows_R], tokens_RK=self.tokens_RK[rows_R]
        )

    def cut(self, max_R: np.ndarray) -> Drafts:
        """At most max_R tokens of each row."""
        return replace(self, sizes_R=np.minimum(self.sizes_R, max_R.clip(0)))

    @cached_property
    def taken_RK(self) -> np.ndarray:
        """Which places hold a token."""
        return np.arange(self.tokens_RK.shape[1]) < self.sizes_R[:, None]


class OwnDrafts:
    """The MTP layers' last drafts in each slot, with the row and its length then, for which they are valid."""

    def __init__(self, num_slots: int, num_layers: int) -> None:
        self.tokens_SK = np.zeros((num_slots, MAX_DRAFT), dtype=np.int64)
        self.reuses_S, self.lengths_S = np.zeros((2, num_slots), dtype=np.int64)
        self.num_layers = num_layers

    def note(self, slots_R: np.ndarray, ahead_RK: np.ndarray, table: Table) -> None:
        self.tokens_SK[slots_R, : self.num_layers] = ahead_RK
        self.reuses_S[slots_R], self.lengths_S[slots_R] = table.reuses_S[slots_R], table.lengths_S[slots_R]

    def of(self, slots: np.ndarray, table: Table) -> Drafts:
        same_row = self.reuses_S[slots] == table.reuses_S[slots]
        slots_R = slots[same_row & (self.lengths_S[slots] == table.lengths_S[slots])]
        sizes_R = np.full(len(slots_R), self.num_layers, dtype=np.int64)
        return Drafts(slots_R=slots_R, sizes_R=sizes_R, tokens_RK=self.tokens_SK[slots_R])
