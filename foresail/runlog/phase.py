"""The current phase of a step and its progress: "rollout 312/512"."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Phase:
    """`total` is 0 if unknown; `waiting` of the `done` items still wait for a verdict.

    `span` is the usual part of a step's time, from start to end, to estimate the time left in the first step.
    """

    name: str
    total: int = 0
    done: int = 0
    waiting: int = 0
    span: tuple[float, float] = (0.0, 0.0)
    lock: threading.Lock = field(default_factory=threading.Lock)  # verdicts come from other threads

    def advance(self, verdict: Future[Any] | None = None) -> None:
        with self.lock:
            self.done += 1
            self.waiting += verdict is not None
        if verdict is not None:
            verdict.add_done_callback(self._settle)

    def _settle(self, verdict: Future[Any]) -> None:
        with self.lock:
            self.waiting -= 1

    def __str__(self) -> str:
        if self.total and self.done >= self.total and self.waiting:
            return f"grading {self.done - self.waiting}/{self.done}"
        return f"{self.name} {self.done}/{max(self.total, self.done)}" if self.total else self.name

    @property
    def share_of_step(self) -> float:
        """An estimate of the finished share of the step."""
        start, end = self.span
        return start + (end - start) * min(1.0, self.done / self.total if self.total else 0.0)
