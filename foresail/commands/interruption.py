"""Ctrl-C: what somebody who interrupts a command is told."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def telling(what_now: str, *, begun: Path | None = None) -> Iterator[None]:
    """What to do next, to somebody who interrupts what happens inside; not before the file `begun` is there."""
    try:
        yield
    except KeyboardInterrupt:
        known = begun is None or begun.exists()
        print(f"\nstopped at once; {what_now if known else 'nothing had begun'}", file=sys.stderr)
        raise
