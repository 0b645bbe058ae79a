"""Whether drafts pay, and how long they should be, from what steps took and how far drafts got lately.

Whoever never drafts learns nothing about drafts, and whoever always does forgets what a plain step takes. So now
and then a few steps of the other kind are tried, ever more rarely while the batch stays as it is. Drafts that would
not pay if they cost nothing are not tried: the first of a size costs a graph.
"""

from __future__ import annotations

from foresail.engine.graph import bucket_of
from foresail.rollout.drafts.allocation import MAX_LENGTH, Acceptance, Lengths, plan_lengths
from foresail.rollout.drafts.step_clock import StepClock

PLAIN = Lengths(0, 0)
MAX_ENTRIES = (
    512  # of a step with drafts: each needs memory for logits, and so many rows gain nothing by drafts
)
DECIDE_EVERY = 8  # steps
TRY_EVERY, TRY_AT_LEAST_EVERY = 32, 256  # steps
TRIED_STEPS = 2  # of which the second is timed: the first may capture a graph
TRIED_LENGTHS = (4, 2, 8)  # in turn
LEAST_GAIN = 0.05  # tokens a row that drafts must bring to be tried


class Pacing:
    """`lengths` before a step; what came of it goes to `times` and `acceptance`."""

    def __init__(self, most_entries: int = MAX_ENTRIES) -> None:
        self.most_entries = most_entries
        self.times, self.acceptance = StepClock(), Acceptance()
        self.best = self.tried = PLAIN
        self.size = self.steps = self.tries = 0
        self.patience = self.wait = TRY_EVERY

    def longest(self, rows: int) -> int:
        """A draft of each of so many rows."""
        return max(0, min(MAX_LENGTH, self.most_entries // max(1, rows) - 1))

    def lengths(self, num_high: int, num_low: int, context: int) -> Lengths:
        """For rows of high and of low priority."""
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
        # a try of drafts that is due is put off until they promise something
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
        """By drafts that were compared with what was sampled, of which there must have been some."""
        seen = self.acceptance.accepted.tried.any()
        return bool(seen and self.acceptance.beta[1 : longest + 1].sum() >= LEAST_GAIN)
