"""Estimates an engine's step times from its latest steps, by their number of entries.

The second fastest of the latest steps counts: a step in which rows begin, end or move is slower.

The time of a step with drafts is interpolated, or extrapolated, between the plain step of the same rows and
measured steps with drafts. It is read at the bucket that its entries fill, so that a step with few drafts is not
taken for a plain one. Without any measured step with drafts, time is assumed to grow with the entries; `pacing`
tries some.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from foresail.engine.graph import bucket_of

LATEST = 5  # steps

Cells = dict[int, deque[float]]  # bucket of entries -> latest times, without the very first


class StepClock:
    """clock(batch, tokens a draft, context) -> milliseconds, an `allocation.StepTime`; 0 tokens: a plain step."""

    def __init__(self) -> None:
        self.plain: Cells = {}
        self.drafted: Cells = {}

    def record(self, batch: int, draft_tokens: int, milliseconds: float) -> None:
        """Record a step of `batch` rows with `draft_tokens` drafted tokens in total."""
        cells, bucket = (self.drafted if draft_tokens else self.plain), bucket_of(batch + draft_tokens)
        if bucket in cells:
            cells[bucket].append(milliseconds)
        else:
            cells[bucket] = deque(maxlen=LATEST)  # the first of a size is skipped: it captures its graph

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
