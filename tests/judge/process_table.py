"""Who descends from whom, by /proc, and whose folders there are: for tests that nothing is left behind."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from foresail.judge.sandbox.fallback import SCRATCH


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


def scratch_folders(owner: int) -> set[str]:
    """The folders of the judges of one process; other tests' judges come and go beside it."""
    return {folder.name for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}{owner}-*")}
