"""How far a phase has come: finished pieces, documents, bytes, from receipts and progress files."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from foresail.curate.run.progress import PROGRESS, Progress
from foresail.data.jobs.pool import receipt_file


@dataclass(frozen=True, kw_only=True)
class Standing:
    label: str
    pieces_done: int
    pieces: int
    documents: int
    documents_per_second: float
    megabytes_per_second: float
    seconds_left: float | None

    def describe(self) -> str:
        """ "3 of 10 pieces, 12,345 documents, 512/s, 34.2 MB/s, 2 min left"."""
        parts = [f"{self.pieces_done:,} of {self.pieces:,} pieces"]
        if self.documents:
            parts += [
                f"{self.documents:,} documents",
                f"{self.documents_per_second:,.0f}/s",
                f"{self.megabytes_per_second:.1f} MB/s",
            ]
        if self.seconds_left is not None and self.pieces_done < self.pieces:
            parts.append(f"{describe_seconds(self.seconds_left)} left")
        return ", ".join(parts)


class Done(NamedTuple):
    documents: int = 0
    bytes: int = 0


class Tracker:
    def __init__(self, label: str, folder: Path, pieces: list[str]) -> None:
        self.label, self.folder = label, folder
        self.unfinished = pieces
        self.finished = Done()
        self.begin = time.monotonic()
        self.before: Done | None = None  # of earlier calls of the command

    def look(self, pieces_done: int, pieces: int) -> Standing:
        self.collect_receipts()
        running = [
            Progress.read(self.folder, path.name.removesuffix(PROGRESS))
            for path in self.folder.glob(f"*{PROGRESS}")
        ]
        documents = self.finished.documents + sum(reached.documents for reached in running)
        size = self.finished.bytes + sum(reached.bytes for reached in running)
        if self.before is None:
            self.before = Done(documents, size)
        seconds = max(time.monotonic() - self.begin, 1e-6)
        rate = (size - self.before.bytes) / seconds
        return Standing(
            label=self.label,
            pieces_done=pieces_done,
            pieces=pieces,
            documents=documents,
            documents_per_second=(documents - self.before.documents) / seconds,
            megabytes_per_second=rate / 1e6,
            seconds_left=self.expected_left(pieces_done, pieces, size) / rate
            if rate and pieces_done
            else None,
        )

    def expected_left(self, pieces_done: int, pieces: int, size: int) -> float:
        """Bytes, if the other pieces are as long as the finished ones; at least of those that nobody has begun."""
        mean = self.finished.bytes / pieces_done
        return max(pieces * mean - size, 0.0)

    def collect_receipts(self) -> None:
        left = []
        for name in self.unfinished:
            file = receipt_file(self.folder, name)
            if not file.exists():
                left.append(name)
                continue
            receipt = json.loads(file.read_text(encoding="utf-8"))
            documents, size = self.finished
            self.finished = Done(documents + receipt.get("inputs", 0), size + receipt.get("input_bytes", 0))
        self.unfinished = left


def describe_seconds(seconds: float) -> str:
    """describe_seconds(200) -> "3 min"."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
