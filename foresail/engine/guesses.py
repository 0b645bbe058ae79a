"""Guesses at what rows draw next, as arrays: a thousand of them pass through the engine without a loop.

Legend: R rows that guess, K places of a draft, S slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from foresail.engine.request import MAX_DRAFT, Draft

CONTEXT = -1  # the parent of guesses that follow the context


@dataclass(frozen=True, kw_only=True)
class Guesses:
    """A line per row: its first sizes_R places hold tokens, each after that in place parents_RK, or CONTEXT."""

    slots_R: np.ndarray
    sizes_R: np.ndarray
    tokens_RK: np.ndarray
    parents_RK: np.ndarray | None = None  # none: all are paths, and each token follows the one before

    @staticmethod
    def of(drafts: Mapping[int, Draft]) -> Guesses:
        """From records, by slot: Guesses.of({3: Draft(tokens=(5, 9))})."""
        tokens_RK = np.zeros((len(drafts), MAX_DRAFT), dtype=np.int64)
        parents_RK = np.tile(np.arange(CONTEXT, MAX_DRAFT - 1), (len(drafts), 1))
        for line, draft in enumerate(drafts.values()):
            tokens_RK[line, : len(draft.tokens)] = draft.tokens
            if draft.parents is not None:
                parents_RK[line, : len(draft.parents)] = draft.parents
        sizes_R = np.array([len(draft.tokens) for draft in drafts.values()], dtype=np.int64)
        guesses = Guesses(
            slots_R=np.array(list(drafts), dtype=np.int64),
            sizes_R=sizes_R,
            tokens_RK=tokens_RK,
            parents_RK=parents_RK,
        )
        return replace(guesses, parents_RK=None) if guesses.paths_R.all() else guesses

    def lines_of(self, slots: np.ndarray) -> np.ndarray:
        """Where these slots' guesses are; -1 for those without."""
        lines_S = np.full(max(slots.max(initial=-1), self.slots_R.max(initial=-1)) + 1, -1)
        lines_S[self.slots_R] = np.arange(len(self.slots_R))
        return lines_S[slots]

    def sizes_of(self, slots: np.ndarray) -> np.ndarray:
        sizes_S = np.zeros(max(slots.max(initial=-1), self.slots_R.max(initial=-1)) + 1, dtype=np.int64)
        sizes_S[self.slots_R] = self.sizes_R
        return sizes_S[slots]

    def only(self, rows_R: np.ndarray) -> Guesses:
        return Guesses(
            slots_R=self.slots_R[rows_R],
            sizes_R=self.sizes_R[rows_R],
            tokens_RK=self.tokens_RK[rows_R],
            parents_RK=None if self.parents_RK is None else self.parents_RK[rows_R],
        )

    def cut(self, depths_R: np.ndarray) -> Guesses:
        """Only guesses within so many tokens of the context: a row at its limit has no use for more."""
        if self.parents_RK is None:
            return replace(self, sizes_R=np.minimum(self.sizes_R, depths_R.clip(0)))
        stay_RK = self.taken_RK & (self.depths_RK <= depths_R[:, None])
        places_RK = stay_RK.cumsum(1) - 1  # where those that stay move to
        order_RK = np.argsort(~stay_RK, axis=1, kind="stable")
        parents_RK = np.where(
            self.parents_RK >= 0, np.take_along_axis(places_RK, self.parents_RK, 1), CONTEXT
        )
        return Guesses(
            slots_R=self.slots_R,
            sizes_R=stay_RK.sum(1),
            tokens_RK=np.take_along_axis(self.tokens_RK, order_RK, 1),
            parents_RK=np.take_along_axis(parents_RK, order_RK, 1),
        )

    @cached_property
    def taken_RK(self) -> np.ndarray:
        return np.arange(self.tokens_RK.shape[1]) < self.sizes_R[:, None]

    @cached_property
    def paths_R(self) -> np.ndarray:
        """Which are paths: every token follows the one before."""
        if self.parents_RK is None:
            return np.ones(len(self.slots_R), dtype=bool)
        follows_RK = self.parents_RK == np.arange(CONTEXT, self.parents_RK.shape[1] - 1)
        return (follows_RK | ~self.taken_RK).all(1)

    @cached_property
    def depths_RK(self) -> np.ndarray:
        """How many tokens after the context each stands."""
        depths_RK = np.zeros_like(self.tokens_RK)
        for place, (parents_R, from_context_R) in enumerate(self._parents_by_place()):
            above_R = np.take_along_axis(depths_RK, parents_R[:, None], 1)[:, 0]
            depths_RK[:, place] = np.where(from_context_R, 1, above_R + 1)
        return depths_RK

    @cached_property
    def sights_RK(self) -> np.ndarray:
        """Whom each sees as bits: bit 0 is the row's last token, bit n the guess in place n - 1.

        5 in place 0, 9 after it, and 7 beside 5: 0b11, 0b111 and 0b1001.
        """
        sights_RK = np.zeros_like(self.tokens_RK)
        for place, (parents_R, from_context_R) in enumerate(self._parents_by_place()):
            above_R = np.take_along_axis(sights_RK, parents_R[:, None], 1)[:, 0]
            sights_RK[:, place] = 2 << place | np.where(from_context_R, 1, above_R)
        return sights_RK

    def _parents_by_place(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each place, in which a parent comes before its child: the parents, and which are the context."""
        assert self.parents_RK is not None, "of paths nobody need ask"
        return [(parents_R.clip(0), parents_R == CONTEXT) for parents_R in self.parents_RK.T]
