"""What steps take, between and beyond those that were measured (`step_table`).

Between what was measured, and beyond it, times run in straight lines; plain steps and those that check drafts are
different kernels, and none is guessed from the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from foresail.rollout.step_table import MeasuredStep

Measured = dict[float, dict[float, dict[float, float]]]  # batch -> draft length -> context -> milliseconds


class StepTimes:
    """times(batch, draft_length, context) -> milliseconds; the length is a mean over rows, 0 a plain step."""

    def __init__(self, rows: Iterable[MeasuredStep]) -> None:
        self.plain: Measured = {}
        self.checking: Measured = {}
        for batch, length, context, milliseconds in rows:
            table = self.checking if length else self.plain
            table.setdefault(batch, {}).setdefault(length, {})[context] = milliseconds

    def __call__(self, batch: int, length: float, context: int) -> float:
        by_batch = {
            measured: line({of: line(contexts, context) for of, contexts in lengths.items()}, length)
            for measured, lengths in (self.checking if length else self.plain).items()
        }
        return line(by_batch, batch)


def line(points: Mapping[float, float], place: float) -> float:
    """line({1: 10.0, 3: 20.0}, 2) -> 15.0; line({1: 10.0, 3: 20.0}, 5) -> 30.0; never below the least point."""
    if len(points) == 1:
        return next(iter(points.values()))
    known = sorted(points.items())
    after = next((index for index, (x, _) in enumerate(known) if x >= place and index), len(known) - 1)
    (left, low), (right, high) = known[after - 1], known[after]
    return max(min(points.values()), low + (high - low) * (place - left) / (right - left))
