"""Ctrl-C: what somebody who interrupts a command is told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def explaining_interrupt(advice: str, *, started: Path | None = None) -> Iterator[None]:
    """What to do next, to somebody who interrupts what happens inside; only once the file `started` is there."""
    try:
        yield
    except KeyboardInterrupt:
        begun = started is None or started.exists()
        print(f"\nstopped at once; {advice if begun else 'nothing had begun'}", file=sys.stderr)
        raise
