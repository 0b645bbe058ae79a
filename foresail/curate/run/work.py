"""CPU seconds of a piece by step, and the bytes that came to each step in them.

    work = Work(); …; work.stop("1 extract", size=4017)       # what was spent since the last stop was that step's

A process that is killed takes its figures along: the ratio of bytes and seconds stays right, the sums are too low.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

LEDGERS = "ledgers"  # writing down what became of documents, and counting it


class Work:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.sizes: dict[str, int] = {}
        self.last = time.process_time()

    def stop(self, label: str, size: int = 0) -> None:
        now = time.process_time()
        self.seconds[label] = self.seconds.get(label, 0.0) + now - self.last
        self.sizes[label] = self.sizes.get(label, 0) + size
        self.last = now

    def as_json(self) -> dict[str, Any]:
        return {"cpu_seconds": self.seconds, "bytes_in_them": self.sizes}


def add_work(total: dict[str, tuple[float, int]], receipts: Iterable[Mapping[str, Any]]) -> None:
    """Seconds and bytes by step, of all receipts that have them."""
    for receipt in receipts:
        for label, seconds in receipt.get("cpu_seconds", {}).items():
            before, size = total.get(label, (0.0, 0))
            total[label] = (before + seconds, size + receipt["bytes_in_them"][label])
