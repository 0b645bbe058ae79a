"""How much a packed file may come to: a gigabyte, and beyond that 200 times its size.

Ordinary pages come to 2 to 15 times, bombs to thousands and millions of times. What is behind the budget is not
read.

    BufferedReader(Budgeted(gzip.open("a.jsonl.gz"), budget_of(path)))      raises Damaged("too_large", …)
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import IO, Any

from foresail.curate.document import Drop

LEAST = 2**30  # bytes of any file
RATIO = 200


class Damaged(Exception):
    """A file or a record cannot be read; it becomes a drop."""

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.drop = Drop(reason, detail)


def budget_of(path: Path) -> int:
    return LEAST + RATIO * path.stat().st_size


class Budget:
    """Bytes that are left; to spend more raises Damaged."""

    def __init__(self, size: int) -> None:
        self.size = self.left = size

    def spend(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise Damaged("too_large", f"it unpacks to more than {self.size:,} bytes; the rest is not read")


class Budgeted(io.RawIOBase):
    """A stream that ends with Damaged where its file comes to more than the budget."""

    def __init__(self, stream: IO[bytes], budget: int) -> None:
        self.stream, self.budget = stream, Budget(budget)

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        size: int = self.stream.readinto(room)  # type: ignore[attr-defined]
        self.budget.spend(size)
        return size

    def close(self) -> None:
        self.stream.close()
        super().close()
