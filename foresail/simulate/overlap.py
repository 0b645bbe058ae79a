"""The time of whole steps (rollout, sync of weights, update), in sequence or one step stale.

With staleness 0 each part waits for the one before. With 1 the rollout of step k + 1 uses the weights of the end of
step k's rollout and runs beside step k's update; the sync follows both.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise


def steps_seconds(
    rollouts: Sequence[float], updates: Sequence[float], sync: float, *, staleness: int
) -> float:
    """Seconds from the start of the first rollout to the end of the last update.

    steps_seconds([5, 5], [3, 3], 1, staleness=0) -> 17: 5 + 3 + 1 + 5 + 3
    steps_seconds([5, 5], [3, 3], 1, staleness=1) -> 14: 5 + 1 + (5 beside 3) + 3; a third would take 6 more
    """
    assert staleness in (0, 1), f"staleness {staleness}"
    if staleness == 0:
        return sum(rollouts) + sum(updates) + sync * (len(updates) - 1)
    beside = sum(max(update, after) for update, (_, after) in zip(updates, pairwise(rollouts), strict=False))
    return rollouts[0] + beside + sync * (len(updates) - 1) + updates[-1]


def mean_step_seconds(
    rollouts: Sequence[float], updates: Sequence[float], sync: float, *, staleness: int
) -> float:
    """Seconds of one step in a long run, without the start."""
    if staleness == 0:
        return (sum(rollouts) + sum(updates)) / len(updates) + sync
    after = [*rollouts[1:], rollouts[0]]
    return sum(map(max, updates, after)) / len(updates) + sync
