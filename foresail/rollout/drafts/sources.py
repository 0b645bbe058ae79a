"""Chooses for each row between the drafts of siblings' texts and of the model's MTP layers.

Each source's acceptance at the 1st, 2nd, … token, given those before it, is measured over all rows and for each
row, where few observations count little. Drafts that were not chosen are also compared with the sampled tokens.

Legend: S slots, R running rows, K places of a draft.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from foresail.engine.drafts import MAX_DRAFT, Drafts
from foresail.engine.engine import Engine

WEIGHT = 6.0  # observations of a row that count as much as the mean of all rows
DECAY = 0.97  # of old observations per step: after 32 steps they count about a third


class SourceRecord:
    """A source's acceptance at each place of a draft, given the places before: of all rows, and of each."""

    def __init__(self, num_slots: int) -> None:
        self.tried_K, self.right_K = np.full(MAX_DRAFT, 2.0), np.full(MAX_DRAFT, 1.0)
        self.tried_SK, self.right_SK = np.zeros((2, num_slots, MAX_DRAFT))

    def note(self, slots_R: np.ndarray, allowed_R: np.ndarray, reached_R: np.ndarray) -> None:
        """For each row: places with a known true token, and how many of the first were right."""
        places_K = np.arange(MAX_DRAFT)
        tried_RK = (places_K < allowed_R[:, None]) & (places_K <= reached_R[:, None])
        right_RK = places_K < reached_R[:, None]
        self.tried_K = DECAY * self.tried_K + tried_RK.sum(0)
        self.right_K = DECAY * self.right_K + right_RK.sum(0)
        self.tried_SK[slots_R] = DECAY * self.tried_SK[slots_R] + tried_RK
        self.right_SK[slots_R] = DECAY * self.right_SK[slots_R] + right_RK

    def forget(self, slots: np.ndarray) -> None:
        self.tried_SK[slots] = self.right_SK[slots] = 0

    @property
    def chances_K(self) -> np.ndarray:
        return self.right_K / self.tried_K

    def expect(self, slots_R: np.ndarray, sizes_R: np.ndarray) -> np.ndarray:
        """The expected accepted tokens of drafts of these sizes."""
        known_RK = WEIGHT * self.chances_K + self.right_SK[slots_R]
        chances_RK = known_RK / (WEIGHT + self.tried_SK[slots_R])
        inside_RK = np.arange(MAX_DRAFT) < sizes_R[:, None]
        return (chances_RK.cumprod(1) * inside_RK).sum(1)


@dataclass(frozen=True, kw_only=True)
class DraftChoice:
    """The drafts of both sources for the same rows, and the choice."""

    siblings: Drafts
    mtp: Drafts | None
    by_mtp_R: np.ndarray

    @property
    def drafts(self) -> Drafts:
        if self.mtp is None:
            return self.siblings
        return Drafts(
            slots_R=self.siblings.slots_R,
            sizes_R=np.where(self.by_mtp_R, self.mtp.sizes_R, self.siblings.sizes_R),
            tokens_RK=np.where(self.by_mtp_R[:, None], self.mtp.tokens_RK, self.siblings.tokens_RK),
        )

    def only(self, rows_R: np.ndarray) -> DraftChoice:
        return DraftChoice(
            siblings=self.siblings.only(rows_R),
            mtp=None if self.mtp is None else self.mtp.only(rows_R),
            by_mtp_R=self.by_mtp_R[rows_R],
        )


class DraftSources:
    """ask MTP layers before a step, choose between both sources after it, compare with the sampled tokens."""

    def __init__(self, engine: Engine) -> None:
        num_slots = len(engine.table.reuses_S)
        self.engine, self.siblings, self.mtp = engine, SourceRecord(num_slots), SourceRecord(num_slots)
        self.reuses_S = np.full(num_slots, -1)  # the occupants of the slots in the records
        self.num_layers = 0 if engine.own_drafts is None else engine.own_drafts.num_layers
        self.seen_K, self.right_K = np.zeros((2, self.num_layers))

    def ask(self, enabled: bool) -> None:
        """Switch drafting by MTP layers on or off; their keys and values are kept up to date anyway."""
        if self.num_layers:
            self.engine.ask_for_drafts(enabled)

    def choose(self, siblings: Drafts, max_R: np.ndarray, reuses_R: np.ndarray) -> DraftChoice:
        """For each row the draft of at most `max_R` tokens with more expected accepted tokens."""
        slots_R = siblings.slots_R
        if not self.num_layers:
            return DraftChoice(siblings=siblings, mtp=None, by_mtp_R=np.zeros(len(slots_R), dtype=bool))
        new_R = self.reuses_S[slots_R] != reuses_R
        self.siblings.forget(slots_R[new_R])
        self.mtp.forget(slots_R[new_R])
        self.reuses_S[slots_R] = reuses_R
        mtp = aligned(self.engine.mtp_drafts(), slots_R).cut(max_R)
        gains_R = self.mtp.expect(slots_R, mtp.sizes_R) - self.siblings.expect(slots_R, siblings.sizes_R)
        return DraftChoice(siblings=siblings, mtp=mtp, by_mtp_R=gains_R > 0)

    def only_mtp(self, choice: DraftChoice) -> bool:
        """Whether all rows use full drafts of MTP layers."""
        mtp = choice.mtp
        return mtp is not None and bool((choice.by_mtp_R & (mtp.sizes_R == self.num_layers)).all())

    def compare(self, choice: DraftChoice, before_R: np.ndarray, sampled_S: np.ndarray) -> None:
        """Compare drafts with the tokens sampled after the first `before_R`."""
        if choice.mtp is None:
            return
        slots_R = choice.mtp.slots_R
        counts_R = sampled_S[slots_R] - before_R
        self.siblings.note(slots_R, *self._compare(choice.siblings, before_R, counts_R))
        allowed_R, reached_R = self._compare(choice.mtp, before_R, counts_R)
        self.mtp.note(slots_R, allowed_R, reached_R)
        places_K = np.arange(self.num_layers)
        self.seen_K += ((places_K < allowed_R[:, None]) & (places_K <= reached_R[:, None])).sum(0)
        self.right_K += (places_K < reached_R[:, None]).sum(0)

    def _compare(
        self, drafts: Drafts, before_R: np.ndarray, counts_R: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """How many places of each draft have a sampled token, and how many of the first are equal."""
        tokens_SL = self.engine.table.tokens_SL
        allowed_R = np.minimum(drafts.sizes_R, counts_R.clip(0))
        places_RK = before_R[:, None] + np.arange(drafts.tokens_RK.shape[1])
        places_RK = places_RK.clip(0, tokens_SL.shape[1] - 1)
        equal_RK = drafts.tokens_RK == tokens_SL[drafts.slots_R[:, None], places_RK]
        known_RK = np.arange(drafts.tokens_RK.shape[1]) < allowed_R[:, None]
        return allowed_R, (equal_RK & known_RK).cumprod(1).sum(1)

    def take_acceptance(self) -> dict[int, float]:
        """Each layer's acceptance since the last call, given that the layers before were right."""
        seen_K, right_K = self.seen_K, self.right_K
        self.seen_K, self.right_K = np.zeros((2, self.num_layers))
        return {int(k) + 1: float(right_K[k] / seen_K[k]) for k in np.flatnonzero(seen_K)}


def aligned(drafts: Drafts, slots_R: np.ndarray) -> Drafts:
    """The drafts of these slots, in their order; empty ones where there are none."""
    lines_R = drafts.lines_of(slots_R) if len(drafts.slots_R) else np.full(len(slots_R), -1)
    sizes_R, tokens_RK = np.zeros(len(slots_R), dtype=np.int64), np.zeros((len(slots_R), MAX_DRAFT), np.int64)
    there_R = lines_R >= 0
    sizes_R[there_R], tokens_RK[there_R] = (
        drafts.sizes_R[lines_R[there_R]],
        drafts.tokens_RK[lines_R[there_R]],
    )
    return Drafts(slots_R=slots_R, sizes_R=sizes_R, tokens_RK=tokens_RK)
