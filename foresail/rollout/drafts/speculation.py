"""An engine's steps with drafts from siblings and by MTP layers, while they pay.

Every sampled token goes to its group's automaton before drafts are proposed. The measured cost of checking drafts
is weighed against how many tokens were accepted lately, and where a plain step gives more tokens a second there are
none. While there are none, drafts are still proposed now and then, and compared with what is sampled. None of this
changes a token. Where the engine has MTP layers, each row gets the draft that promises more (`sources`).

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
from foresail.rollout.drafts.listening import Listener
from foresail.rollout.drafts.pacing import MAX_ENTRIES, Pacing
from foresail.rollout.drafts.sources import DraftChoice, DraftSources

LOOK_EVERY = 2 * MAX_LENGTH  # plain steps between drafts that are only compared
UNREAD_STEPS = (
    7  # on end, where MTP layers have all rows' best drafts: nobody reads these steps before the next
)


@dataclass(kw_only=True)
class DraftFigures:
    """What drafts did. Where there were any, a row sampled 1 + accepted / rows tokens a step."""

    steps: int = 0
    drafted_steps: int = 0
    rows: int = 0
    drafted: int = 0
    accepted: int = 0
    mtp_rows: int = 0  # of `rows`, those whose draft was by MTP layers
    search_seconds: float = 0.0  # for appending and finding before a step


@dataclass(frozen=True, kw_only=True)
class DraftAttempt:
    """Drafts of up to most_R tokens, who they were for, and how much these had sampled."""

    guesses: Drafts
    most_R: np.ndarray
    reuses_R: np.ndarray
    sampled_R: np.ndarray
    choice: DraftChoice


class Speculation:
    """Its `listener` is told of each request that begins; then step.

    A step is launched as soon as its drafts are found; what the one before brought is counted while it runs.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.pacing = Pacing(max(MAX_ENTRIES, len(engine.table.reuses_S)))  # rows it can hold anyway
        self.tally = DraftFigures()
        self.sources = DraftSources(engine)
        self.last_return = time.perf_counter()
        self.timed: tuple[int, int] | None = None  # rows and drafted tokens of the step that runs
        self.forget()

    def forget(self) -> None:
        """All texts: the requests have ended, and the weights that sampled them are gone."""
        self.listener = Listener(self.engine)
        self.under_way: DraftAttempt | None = None  # checked by the step that runs
        self.unchecked: DraftAttempt | None = None  # only to be compared with what is sampled
        self.steps_since_look = 0
        self.unread_steps = 0  # to come

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
        if not self.engine.took_drafts:  # there were no pages for them
            drafts, self.under_way, self.unread_steps = None, None, 0
        # From here on the device is at work again.
        self._take_time(slots_R, drafts)
        if before is not None:
            self._count(before, accepted_R)
        if drafts is None:
            self._look_on()
        for completion in ended:
            self.listener.note(completion)
        return ended

    def _search(self) -> tuple[Drafts | None, np.ndarray]:
        """Drafts for the running slots, as far as they are worth it."""
        slots_R, most_R = self._allow()
        self.sources.ask(bool(most_R.any()) or self.steps_since_look + 1 >= LOOK_EVERY)
        if not most_R.any():
            self.under_way = None
            return None, slots_R
        self.under_way = attempt = self._attempt(slots_R, most_R)
        self.unread_steps = UNREAD_STEPS if self.sources.only_mtp(attempt.choice) else 0
        return attempt.guesses, slots_R

    def _unread(self) -> tuple[Drafts, np.ndarray]:
        """What MTP layers say, without a look at it."""
        self.under_way, self.unread_steps = None, self.unread_steps - 1
        return self.engine.unread_drafts(), self.listener.greet()

    def _allow(self) -> tuple[np.ndarray, np.ndarray]:
        """The running slots, and how many tokens the draft of each may have.

        Those of whose group nobody has ended, which may be the longest of all, go before others.
        """
        slots_R = self.listener.greet()
        high, context = int(self.listener.unknown_S[slots_R].sum()), self.engine.table.lengths_S[slots_R]
        lengths = self.pacing.lengths(high, len(slots_R) - high, int(context.mean()) if len(slots_R) else 0)
        if any(lengths):
            self.engine.read_pending()
            slots_R = self.listener.hear()
        return slots_R, np.where(self.listener.unknown_S[slots_R], lengths.high, lengths.low)

    def _attempt(self, slots_R: np.ndarray, most_R: np.ndarray) -> DraftAttempt:
        reuses_R = self.listener.reuses_S[slots_R]
        choice = self.sources.choose(self.listener.guess(slots_R, most_R), most_R, reuses_R)
        return DraftAttempt(
            guesses=choice.drafts,
            most_R=most_R,
            reuses_R=reuses_R,
            sampled_R=self.listener.heard(slots_R),
            choice=choice,
        )

    def _accepted(self) -> np.ndarray:
        """How many drafted tokens the last step that was read accepted. A preempted row sampled nothing."""
        if self.under_way is None:
            return np.zeros(0, dtype=np.int64)
        sampled_R = self.engine.table.sampled_S[
            self.under_way.guesses.slots_R
        ]  # also of those who have just left
        return (sampled_R - self.under_way.sampled_R - 1).clip(0)

    def _count(self, attempt: DraftAttempt, accepted_R: np.ndarray) -> None:
        sizes_R = attempt.guesses.sizes_R
        self.pacing.acceptance.record(attempt.most_R, sizes_R, np.minimum(accepted_R, sizes_R))
        self.tally.drafted_steps += 1
        self.tally.rows += len(accepted_R)
        self.tally.mtp_rows += int(attempt.choice.by_mtp_R.sum())
        self.tally.drafted += int(sizes_R.sum())
        self.tally.accepted += int(accepted_R.sum())

    def _look_on(self) -> None:
        """Think of drafts that nobody checks, and compare them when their rows have sampled as much.

        Where rows are too many for drafts there is nothing to learn.
        """
        self.steps_since_look += 1
        if self.unchecked is not None and self.steps_since_look >= MAX_LENGTH:  # before short rows have ended
            self._compare(self.unchecked)
            self.unchecked = None
        rows = len(self.engine.slots)
        if self.steps_since_look < LOOK_EVERY or not rows or not self.pacing.longest(rows):
            return
        self.steps_since_look = 0
        slots_R = self.listener.hear()
        self.unchecked = self._attempt(slots_R, np.full(len(slots_R), MAX_LENGTH))

    def _compare(self, attempt: DraftAttempt) -> None:
        """For rows that are still there and have sampled enough."""
        table, slots_R = self.engine.table, attempt.guesses.slots_R
        enough_R = table.sampled_S[slots_R] >= attempt.sampled_R + MAX_LENGTH
        here_R = (table.reuses_S[slots_R] == attempt.reuses_R) & enough_R
        places_RK = attempt.sampled_R[here_R, None] + np.arange(MAX_LENGTH)
        sampled_RK = table.tokens_SL[slots_R[here_R, None], places_RK]
        guesses = attempt.guesses.only(here_R)
        right_RK = guesses.taken_RK[:, :MAX_LENGTH] & (guesses.tokens_RK[:, :MAX_LENGTH] == sampled_RK)
        self.sources.compare(attempt.choice.only(here_R), attempt.sampled_R[here_R], table.sampled_S)
        if here_R.any():
            self.pacing.acceptance.record(attempt.most_R[here_R], guesses.sizes_R, right_RK.cumprod(1).sum(1))

    def _take_time(self, slots_R: np.ndarray, drafts: Drafts | None) -> None:
        """From one return to the next the step before has run, with or without prompts to compute."""
        now, running = time.perf_counter(), np.fromiter(self.engine.slots, np.int64)
        if self.timed is not None and len(slots_R):  # else nothing ran since: that was a pause
            self.pacing.times.record(*self.timed, milliseconds=1e3 * (now - self.last_return))
        drafted = 0 if drafts is None else int(drafts.sizes_R.sum())
        filled = self.listener.are_new(running).any()
        self.timed = None if filled or not len(slots_R) else (len(slots_R), drafted)
        self.last_return = now
        self.tally.steps += 1
