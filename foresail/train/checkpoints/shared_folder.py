"""A check that all ranks see the run's folder: they write its checkpoints together, from whichever host they are
on.

with marked(folder) as mark:     # rank 0
    …                            # every other rank: mark.find()
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A file with a random name, which every rank must see."""

    path: Path
    seconds: float = 60.0  # until a file system of a network shows a new file to every host

    def find(self) -> None:
        deadline = time.monotonic() + self.seconds
        while not self.path.exists():
            if time.monotonic() > deadline:
                raise ValueError(
                    f"host {socket.gethostname()} does not see the run's folder {self.path.parent} as rank 0 does, "
                    "and all ranks write checkpoints there; set run.root to a folder that all hosts share"
                )
            time.sleep(0.1)


@contextmanager
def marked(folder: Path) -> Iterator[Mark]:
    mark = Mark(path=folder.absolute() / f".seen-by-all-{secrets.token_hex(8)}")
    mark.path.touch()
    try:
        yield mark
    finally:
        mark.path.unlink(missing_ok=True)
