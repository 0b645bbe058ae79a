"""Seconds by part of a step, and when each part ran, for the metrics and the timeline."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """`with watch("rollout"): …` then `watch.seconds["rollout"]`."""

    def __init__(self) -> None:
        self.began = time.time()
        self.seconds: dict[str, float] = {}
        self.events: list[dict[str, float | str]] = []

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        start = time.time()
        try:
            yield
        finally:
            self.add(part, start, time.time())

    def add(self, part: str, start: float, end: float) -> None:
        """A part that ran elsewhere, perhaps before this step began."""
        self.seconds[part] = self.seconds.get(part, 0.0) + end - start
        self.events.append({"what": part, "start": start, "end": end})

    def metrics(self) -> dict[str, float]:
        parts = {f"timing_s/{part}": seconds for part, seconds in self.seconds.items()}
        return {**parts, "timing_s/step": self.total}

    @property
    def total(self) -> float:
        return time.time() - self.began
