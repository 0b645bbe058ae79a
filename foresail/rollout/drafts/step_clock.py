"""What an engine's steps take, learned while it works: the latest few, by how many entries a step had.

Of those the second fastest counts: a step in which rows came, went or were moved is slow for reasons of its own.

A step with drafts is read off the straight lines through the plain step of the same rows and the drafted ones
that were seen, and their prolongation: if that flatters long drafts, they are soon seen themselves. It is read at
the bucket its entries fill, so that a step with hardly a draft is not taken for a plain one. While there was none,
time is thought to grow with the entries, and somebody must try: see `pacing`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from foresail.engine.graph import bucket_of

LATEST = 5  # steps

Cells = dict[int, deque[float]]  # a bucket of entries -> the latest times; the very first is left aside


class StepClock:
    """clock(batch, tokens a draft, context) -> milliseconds, an `allocation.StepTime`; 0 tokens: a plain step."""

    def __init__(self) -> None:
        self.plain: Cells = {}
        self.drafted: Cells = {}

    def record(self, batch: int, draft_tokens: int, milliseconds: float) -> None:
        """A step of so many rows with so many drafted tokens in all."""
        cells, bucket = (self.drafted if draft_tokens else self.plain), bucket_of(batch + draft_tokens)
        if bucket in cells:
            cells[bucket].append(milliseconds)
        else:
            cells[bucket] = deque(maxlen=LATEST)  # the first of a size is slow: its graph was captured

    def __call__(self, batch: int, length: float, context: int) -> float:
        plain, drafted = usual(self.plain), usual(self.drafted)
        start = line(plain, batch) if plain else 1.0
        if not length:
            return start
        curve = {float(batch): start} | {size: time for size, time in drafted.items() if size > batch}
        entries = bucket_of(batch + max(1, round(batch * length)))
        return line(curve, entries) if len(curve) > 1 else start * (1 + length)


def usual(cells: Mapping[int, deque[float]]) -> dict[float, float]:
    return {float(size): sorted(times)[:2][-1] for size, times in cells.items() if times}


def line(points: Mapping[float, float], place: float) -> float:
    """line({1: 10.0, 3: 20.0}, 2) -> 15.0; line({1: 10.0, 3: 20.0}, 5) -> 30.0; never below the least point."""
    if len(points) == 1:
        return next(iter(points.values()))
    known = sorted(points.items())
    after = next((index for index, (x, _) in enumerate(known) if x >= place and index), len(known) - 1)
    (left, low), (right, high) = known[after - 1], known[after]
    return max(min(points.values()), low + (high - low) * (place - left) / (right - left))
