"""Who descends from whom, by /proc: for tests that nobody is left behind."""

from __future__ import annotations

import contextlib
from pathlib import Path


def descendants(pid: int) -> set[int]:
    """Children, grandchildren and so on of a process; zombies count, for they are left behind too."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = int(fields[1])
    found: set[int] = set()
    size = -1
    while size != len(found):
        size = len(found)
        found |= {child for child, parent in parents.items() if parent == pid or parent in found}
    return found
