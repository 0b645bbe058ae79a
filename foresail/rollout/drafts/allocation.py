"""Chooses draft lengths from the cost of a verify step and the tokens it is expected to accept.

A step that checks drafts costs more than a plain one and samples more tokens. `Acceptance` measures accepted
tokens, the caller's function estimates step times, and `best_length` finds the length with the least time per
token: 0 where plain steps are faster. `allocate` distributes the tokens: requests of high priority, which others
wait for, get longer drafts.

    lengths = plan_lengths(high, low, context, acceptance, times)         # Lengths(high=4, low=2)
    acceptance.record(asked_R, drafted_R, accepted_R)                     # after the step

The formulas are Seer's throughput model and its Algorithm 1, corrected: as printed it favours low priority.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from foresail.engine.drafts import MAX_DRAFT

MAX_LENGTH = 8  # of a draft; Seer's
PRIORITY = 2.0  # the worth of a token of high priority relative to one of low; Seer's

StepTime = Callable[
    [int, float, int], float
]  # (batch, draft tokens a row, context) -> milliseconds; 0: plain
DraftTime = Callable[[int, int], float]  # (batch, draft length) -> milliseconds to find the drafts


class Lengths(NamedTuple):
    """Draft tokens for each request of high and of low priority."""

    high: int
    low: int

    def at_most(self, longest: int) -> Lengths:
        """Shorten the lengths for a batch that has grown since."""
        return Lengths(min(self.high, longest), min(self.low, longest))


class Survival:
    """Estimates how far drafts get: survival.curve[i] is the probability to reach i or more.

    The probability of each next token is measured among drafts that reached it and were allowed it, so a short
    draft says nothing about later tokens; without measurements it is the mean.
    """

    def __init__(self, rate: float, *, weight: float = 8.0, memory: float = 32.0) -> None:
        if not 0 <= rate <= 1:
            raise ValueError(f"the chance to begin with is from 0 to 1; got {rate}")
        # a prior of `weight` observations
        self.rate, self.weight, self.memory = rate, weight, memory
        self.tried, self.made = np.zeros(MAX_DRAFT), np.zeros(MAX_DRAFT)

    def record(self, allowed_R: np.ndarray, reached_R: np.ndarray) -> None:
        """Record each row. Records of `memory` calls ago count about a third of the latest.

        So the few rows at the end of a step, often of another kind, soon outweigh the many that ended.
        """
        assert (reached_R <= allowed_R).all() and allowed_R.max(initial=0) <= MAX_DRAFT
        keep = 1 - 1 / self.memory
        steps = np.arange(MAX_DRAFT)[:, None]
        self.tried = keep * self.tried + ((reached_R >= steps) & (allowed_R > steps)).sum(1)
        self.made = keep * self.made + (reached_R > steps).sum(1)

    @property
    def mean(self) -> float:
        return float((self.made.sum() + self.weight * self.rate) / (self.tried.sum() + self.weight))

    @property
    def curve(self) -> np.ndarray:
        chances = (self.made + self.weight * self.mean) / (self.tried + self.weight)
        return np.concatenate([[1.0], np.cumprod(chances)])


class Acceptance:
    """Acceptance of drafts: alpha and beta of Seer; a draft that was not found counts as not accepted.

    beta[i] is the probability that a row with at least i tokens allowed gets i of them accepted. Unchecked drafts
    are compared with the tokens of plain steps, so that speculation that is off learns when to resume.
    """

    def __init__(self, *, alpha: float = 0.5, weight: float = 8.0, memory: float = 32.0) -> None:
        self.accepted = Survival(alpha, weight=weight, memory=memory)
        self.drafted = Survival(1.0, weight=weight, memory=memory)

    def record(
        self,
        asked_R: Sequence[int] | np.ndarray,
        drafted_R: Sequence[int] | np.ndarray,
        accepted_R: Sequence[int] | np.ndarray,
    ) -> None:
        """For each row: the tokens allowed, drafted and accepted."""
        asked_R, drafted_R, accepted_R = map(np.asarray, (asked_R, drafted_R, accepted_R))
        self.accepted.record(asked_R, accepted_R)
        self.drafted.record(asked_R, drafted_R)

    @property
    def alpha(self) -> float:
        return self.accepted.mean

    @property
    def beta(self) -> np.ndarray:
        return self.accepted.curve

    def tokens_to_check(self, length: int) -> float:
        """The mean length of a row's draft, if `length` tokens are allowed."""
        return float(self.drafted.curve[1 : length + 1].sum())


def time_per_token(
    beta: Sequence[float] | np.ndarray, length: int, step: float, search: float = 0.0
) -> float:
    """T_SD: time_per_token([1, 0.5], 1, 3.0) -> 2.0, since such a step samples one token and a half.

    Where beta[i] is alpha ** i this is the printed (1 - alpha) (search + step) / (1 - alpha ** (length + 1)).
    """
    return (search + step) / float(np.sum(beta[: length + 1]))


def best_length(
    batch: int,
    context: int,
    acceptance: Acceptance,
    step_time: StepTime,
    *,
    draft_time: DraftTime = lambda batch, length: 0.0,
    max_length: int = MAX_LENGTH,
) -> int:
    """The draft length with the least time a token; 0 if no draft beats a plain step."""
    beta = acceptance.beta

    def time(length: int) -> float:
        step = step_time(batch, acceptance.tokens_to_check(length), context)
        return time_per_token(beta, length, step, draft_time(batch, length) if length else 0.0)

    return min(range(max_length + 1), key=time)


def plan_lengths(
    num_high: int,
    num_low: int,
    context: int,
    acceptance: Acceptance,
    step_time: StepTime,
    *,
    draft_time: DraftTime = lambda batch, length: 0.0,
    max_length: int = MAX_LENGTH,
) -> Lengths:
    """Draft lengths for a step of these rows; Lengths(0, 0) is a plain step."""
    batch = num_high + num_low
    if batch == 0:
        return Lengths(0, 0)
    length = best_length(batch, context, acceptance, step_time, draft_time=draft_time, max_length=max_length)
    return allocate(num_high, num_low, length * batch, acceptance.beta, max_length=max_length)


def allocate(
    num_high: int,
    num_low: int,
    budget: int,
    beta: Sequence[float] | np.ndarray,
    *,
    priority: float = PRIORITY,
    max_length: int = MAX_LENGTH,
) -> Lengths:
    """Give each next token to the priority with the larger chance of acceptance, high weighted by `priority`.

    allocate(40, 40, 240, 0.6 ** np.arange(17)) -> Lengths(high=4, low=2)
    """
    high, low, left = 0, 0, budget
    while True:
        high_fits = 0 < num_high <= left and high < max_length
        low_fits = 0 < num_low <= left and low < max_length
        if high_fits and (not low_fits or priority * beta[high + 1] >= beta[low + 1]):
            high, left = high + 1, left - num_high
        elif low_fits:
            low, left = low + 1, left - num_low
        else:
            return Lengths(high, low)
