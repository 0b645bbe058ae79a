"""Advice after Ctrl-C."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def explaining_interrupt(advice: str, *, started: Path | None = None) -> Iterator[None]:
    """On Ctrl-C inside, print `advice`; with `started` only if that file exists."""
    try:
        yield
    except KeyboardInterrupt:
        has_started = started is None or started.exists()
        print(f"\nstopped at once; {advice if has_started else 'nothing had begun'}", file=sys.stderr)
        raise
