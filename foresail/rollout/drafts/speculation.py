"""Speculative decoding: an engine's steps with drafts from siblings and MTP layers, while they save time.

Every sampled token is appended to its group's automaton before drafting. Where plain steps give more tokens per
second by recent step times and acceptance, there are no drafts; then unchecked drafts are compared with the sampled
tokens now and then. Drafts never change a token. With MTP layers each row uses the draft with the higher
expectation (`sources`).

Legend: R running rows, K places of a draft.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from foresail.engine.drafts import Drafts
from foresail.engine.engine import Engine
from foresail.engine.request import Completion
from foresail.rollout.drafts.allocation import MAX_LENGTH
from foresail.rollout.drafts.pacing import MAX_ENTRIES, Pacing
from foresail.rollout.drafts.row_drafts import RowDrafts
from foresail.rollout.drafts.sources import DraftChoice, DraftSources

UNCHECKED_EVERY = 2 * MAX_LENGTH  # plain steps between unchecked drafts
UNREAD_STEPS = (
    7  # in a row, while MTP layers have the best drafts of all rows: such steps are not read before the next
)


@dataclass(kw_only=True)
class DraftFigures:
    """Counts of drafts. With drafts a row samples 1 + accepted / rows tokens per step."""

    steps: int = 0
    drafted_steps: int = 0
    rows: int = 0
    drafted: int = 0
    accepted: int = 0
    mtp_rows: int = 0  # those of `rows` with a draft of MTP layers
    search_seconds: float = 0.0  # appending and drafting before a step


@dataclass(frozen=True, kw_only=True)
class DraftAttempt:
    """Drafts of up to max_R tokens, their rows, and how many tokens these had sampled."""

    guesses: Drafts
    max_R: np.ndarray
    reuses_R: np.ndarray
    sampled_R: np.ndarray
    choice: DraftChoice


class Speculation:
    """Requests begin at `row_drafts`; then `step`.

    A step is launched as soon as its drafts are ready; the step before is counted while it runs.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.pacing = Pacing(max(MAX_ENTRIES, len(engine.table.reuses_S)))  # rows it can hold without drafts
        self.tally = DraftFigures()
        self.sources = DraftSources(engine)
        self.last_return = time.perf_counter()
        self.timed: tuple[int, int] | None = None  # rows and drafted tokens of the running step
        self.forget()

    def forget(self) -> None:
        """Forget all texts at an update of the weights."""
        self.row_drafts = RowDrafts(self.engine)
        self.under_way: DraftAttempt | None = None  # checked by the running step
        self.unchecked: DraftAttempt | None = None  # only compared with the sampled tokens
        self.steps_since_unchecked = 0
        self.unread_steps = 0  # left

    def step(self) -> list[Completion]:
        """One step of the engine, with drafts or without."""
        if self.under_way is not None:
            self.engine.read_pending()
        started = time.perf_counter()
        before, accepted_R = self.under_way, self._accepted()
        if before is not None:
            self.sources.compare(before.choice, before.sampled_R, self.engine.table.sampled_S)
        drafts, slots_R = self._unread() if self.unread_steps else self._search()
        self.tally.search_seconds += time.perf_counter() - started
        ended = self.engine.step(drafts)
        if not self.engine.took_drafts:  # no pages were free for them
            drafts, self.under_way, self.unread_steps = None, None, 0
        # The device works from here on.
        self._take_time(slots_R, drafts)
        if before is not None:
            self._count(before, accepted_R)
        if drafts is None:
            self._draft_unchecked()
        for completion in ended:
            self.row_drafts.note(completion)
        return ended

    def _search(self) -> tuple[Drafts | None, np.ndarray]:
        """Drafts for the running slots, if worthwhile."""
        slots_R, max_R = self._allow()
        self.sources.ask(bool(max_R.any()) or self.steps_since_unchecked + 1 >= UNCHECKED_EVERY)
        if not max_R.any():
            self.under_way = None
            return None, slots_R
        self.under_way = attempt = self._attempt(slots_R, max_R)
        self.unread_steps = UNREAD_STEPS if self.sources.only_mtp(attempt.choice) else 0
        return attempt.guesses, slots_R

    def _unread(self) -> tuple[Drafts, np.ndarray]:
        """MTP layers' drafts, which stay on the device."""
        self.under_way, self.unread_steps = None, self.unread_steps - 1
        return self.engine.unread_drafts(), self.row_drafts.register_slots()

    def _allow(self) -> tuple[np.ndarray, np.ndarray]:
        """The running slots, and the largest draft length of each.

        Rows of groups without a finished sample, perhaps the longest, have high priority.
        """
        slots_R = self.row_drafts.register_slots()
        high, context = int(self.row_drafts.unknown_S[slots_R].sum()), self.engine.table.lengths_S[slots_R]
        lengths = self.pacing.lengths(high, len(slots_R) - high, int(context.mean()) if len(slots_R) else 0)
        if any(lengths):
            self.engine.read_pending()
            slots_R = self.row_drafts.append_new_tokens()
        return slots_R, np.where(self.row_drafts.unknown_S[slots_R], lengths.high, lengths.low)

    def _attempt(self, slots_R: np.ndarray, max_R: np.ndarray) -> DraftAttempt:
        reuses_R = self.row_drafts.reuses_S[slots_R]
        choice = self.sources.choose(self.row_drafts.draft(slots_R, max_R), max_R, reuses_R)
        return DraftAttempt(
            guesses=choice.drafts,
            max_R=max_R,
            reuses_R=reuses_R,
            sampled_R=self.row_drafts.num_appended(slots_R),
            choice=choice,
        )

    def _accepted(self) -> np.ndarray:
        """How many drafted tokens the last step that was read accepted; a preempted row has none."""
        if self.under_way is None:
            return np.zeros(0, dtype=np.int64)
        sampled_R = self.engine.table.sampled_S[
            self.under_way.guesses.slots_R
        ]  # also of rows that have just ended
        return (sampled_R - self.under_way.sampled_R - 1).clip(0)

    def _count(self, attempt: DraftAttempt, accepted_R: np.ndarray) -> None:
        sizes_R = attempt.guesses.sizes_R
        self.pacing.acceptance.record(attempt.max_R, sizes_R, np.minimum(accepted_R, sizes_R))
        self.tally.drafted_steps += 1
        self.tally.rows += len(accepted_R)
        self.tally.mtp_rows += int(attempt.choice.by_mtp_R.sum())
        self.tally.drafted += int(sizes_R.sum())
        self.tally.accepted += int(accepted_R.sum())

    def _draft_unchecked(self) -> None:
        """Make unchecked drafts now and then, and compare them once their rows have sampled as much.

        None with too many rows for drafts.
        """
        self.steps_since_unchecked += 1
        if self.unchecked is not None and self.steps_since_unchecked >= MAX_LENGTH:  # before short rows end
            self._compare(self.unchecked)
            self.unchecked = None
        rows = len(self.engine.slots)
        if self.steps_since_unchecked < UNCHECKED_EVERY or not rows or not self.pacing.longest(rows):
            return
        self.steps_since_unchecked = 0
        slots_R = self.row_drafts.append_new_tokens()
        self.unchecked = self._attempt(slots_R, np.full(len(slots_R), MAX_LENGTH))

    def _compare(self, attempt: DraftAttempt) -> None:
        """Compare rows that still run and have sampled enough."""
        table, slots_R = self.engine.table, attempt.guesses.slots_R
        enough_R = table.sampled_S[slots_R] >= attempt.sampled_R + MAX_LENGTH
        here_R = (table.reuses_S[slots_R] == attempt.reuses_R) & enough_R
        places_RK = attempt.sampled_R[here_R, None] + np.arange(MAX_LENGTH)
        sampled_RK = table.tokens_SL[slots_R[here_R, None], places_RK]
        guesses = attempt.guesses.only(here_R)
        right_RK = guesses.taken_RK[:, :MAX_LENGTH] & (guesses.tokens_RK[:, :MAX_LENGTH] == sampled_RK)
        self.sources.compare(attempt.choice.only(here_R), attempt.sampled_R[here_R], table.sampled_S)
        if here_R.any():
            self.pacing.acceptance.record(attempt.max_R[here_R], guesses.sizes_R, right_RK.cumprod(1).sum(1))

    def _take_time(self, slots_R: np.ndarray, drafts: Drafts | None) -> None:
        """Record the time of the step before, measured between two calls."""
        now, running = time.perf_counter(), np.fromiter(self.engine.slots, np.int64)
        if self.timed is not None and len(slots_R):  # else nothing ran: a pause
            self.pacing.times.record(*self.timed, milliseconds=1e3 * (now - self.last_return))
        drafted = 0 if drafts is None else int(drafts.sizes_R.sum())
        filled = self.row_drafts.are_new(running).any()
        self.timed = None if filled or not len(slots_R) else (len(slots_R), drafted)
        self.last_return = now
        self.tally.steps += 1
