"""Decides when to draft and how long, from recent step times and acceptance.

Both kinds of steps must be measured: while steps draft, a few plain ones are tried now and then, and the reverse,
ever more rarely while the batch stays the same. Drafts that would accept almost nothing are not tried, since the
first of each size captures a graph.
"""

from __future__ import annotations

from foresail.engine.graph import bucket_of
from foresail.rollout.drafts.allocation import MAX_LENGTH, Acceptance, Lengths, plan_lengths
from foresail.rollout.drafts.step_clock import StepClock

PLAIN = Lengths(0, 0)
MAX_ENTRIES = 512  # of a step with drafts: each needs memory for logits, and larger batches gain nothing
DECIDE_EVERY = 8  # steps
TRY_EVERY, TRY_AT_LEAST_EVERY = 32, 256  # steps
TRIED_STEPS = 2  # the second is timed: the first may capture a graph
TRIED_LENGTHS = (4, 2, 8)  # in turn
LEAST_GAIN = 0.05  # accepted tokens per row that a trial must promise


class Pacing:
    """`lengths` before a step; its results go to `times` and `acceptance`."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self.max_entries = max_entries
        self.times, self.acceptance = StepClock(), Acceptance()
        self.best = self.tried = PLAIN
        self.size = self.steps = self.tries = 0
        self.patience = self.wait = TRY_EVERY

    def longest(self, rows: int) -> int:
        """The longest draft for each of these rows."""
        return max(0, min(MAX_LENGTH, self.max_entries // max(1, rows) - 1))

    def lengths(self, num_high: int, num_low: int, context: int) -> Lengths:
        """The draft lengths of rows of high and of low priority."""
        batch = max(1, num_high + num_low)
        size, longest = bucket_of(batch), self.longest(batch)
        if size != self.size:
            self.size, self.patience = size, TRY_EVERY
            self.wait = min(self.wait, self.patience)
        if self.steps % DECIDE_EVERY == 0:
            self.best = plan_lengths(
                num_high, num_low, context, self.acceptance, self.times, max_length=longest
            )
        self.steps += 1
        # a due trial of drafts waits until they are promising
        if self.wait != TRIED_STEPS or any(self.best) or self._are_promising(longest):
            self.wait -= 1
        if self.wait >= TRIED_STEPS:
            return self.best.at_most(longest)
        if self.wait == TRIED_STEPS - 1:
            self.tries += 1
            length = min(TRIED_LENGTHS[self.tries % len(TRIED_LENGTHS)], longest)
            self.tried = PLAIN if any(self.best) else Lengths(length, length)
        if self.wait == 0:
            self.wait = self.patience = min(2 * self.patience, TRY_AT_LEAST_EVERY)
        return self.tried.at_most(longest)

    def _are_promising(self, longest: int) -> bool:
        """Judged by unchecked drafts that were compared with the sampled tokens."""
        seen = self.acceptance.accepted.tried.any()
        return bool(seen and self.acceptance.beta[1 : longest + 1].sum() >= LEAST_GAIN)
