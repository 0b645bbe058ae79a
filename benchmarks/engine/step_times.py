"""What steps take, between and beyond those that were measured (`simulate/costs.py` reads the table).

Between what was measured, and beyond it, times run in straight lines; plain steps and those that check drafts are
different kernels, and none is guessed from the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from foresail.rollout.drafts.step_clock import line
from foresail.simulate.costs import MeasuredStep

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
