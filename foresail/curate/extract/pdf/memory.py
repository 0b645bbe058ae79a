"""A lower limit of memory for a while: what nobody can measure beforehand ends its process, and no machine.

with at_most(2**31): …          # so much more than there is now
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def at_most(more: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = data_bytes() + more
    with suppress(ValueError, OSError):
        resource.setrlimit(
            resource.RLIMIT_DATA, (limit if soft == resource.RLIM_INFINITY else min(soft, limit), hard)
        )
    try:
        yield
    finally:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def data_bytes() -> int:
    """What the process has of the memory that this limit counts."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    except (OSError, ValueError, IndexError):
        return 2**33  # no /proc: as good as no lower limit
