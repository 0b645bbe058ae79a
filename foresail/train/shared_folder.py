"""Whether all ranks see the run's folder: they write its checkpoints together, from whichever host they are on.

with marked(folder) as mark:     # rank 0
    …                            # every other rank: find_mark(mark)
"""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 60.0  # until a network's file system shows a new file to every host


@contextmanager
def marked(folder: Path) -> Iterator[Path]:
    """A file that is nowhere else, for so long."""
    mark = folder.absolute() / f".seen-by-all-{secrets.token_hex(8)}"
    mark.touch()
    try:
        yield mark
    finally:
        mark.unlink(missing_ok=True)


def find_mark(mark: Path, seconds: float = SECONDS) -> None:
    deadline = time.monotonic() + seconds
    while not mark.exists():
        if time.monotonic() > deadline:
            raise ValueError(
                f"host {socket.gethostname()} does not see the run's folder {mark.parent} as rank 0 does, and all "
                "ranks write checkpoints there; set run.root to a folder that all hosts share"
            )
        time.sleep(0.1)
