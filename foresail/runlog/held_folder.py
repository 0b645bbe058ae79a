"""Detects that a run's folder was moved or removed while the run goes on.

    held = HeldFolder(path)
    held.check()    # raises FolderGone once it was moved or removed

Writing by the old path would create a second folder, from which the run could not be resumed.
"""

from __future__ import annotations

import os
from pathlib import Path


class FolderGone(OSError):
    """The run's folder was moved or removed; the message says where the last checkpoint is."""


class HeldFolder:
    """Keeps the folder open, to recognise that it was moved."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = os.open(path, os.O_RDONLY)

    def check(self) -> None:
        if self._descriptor is None:
            return
        try:
            if os.path.samestat(os.stat(self.path), os.fstat(self._descriptor)):
                return
        except (FileNotFoundError, NotADirectoryError):
            pass
        raise FolderGone(self.describe_loss())

    def describe_loss(self) -> str:
        gone = f"{self.path} was moved or removed while the run went on, which stops here"
        if (now := self.find()) is None:
            return f"{gone}; bring it back, then go on from its last checkpoint: foresail resume {self.path}"
        steps = sorted(
            int(number)
            for path in (now / "checkpoints").glob("step_*")
            if (number := path.name.removeprefix("step_")).isdecimal()
        )
        if not steps:
            return f"{gone}; it is {now} now, and has no checkpoint yet: start the run anew"
        last = now / "checkpoints" / f"step_{steps[-1]}"
        return f"{gone}; it is {now} now, and {last} is its last checkpoint; to go on: foresail resume {now}"

    def find(self) -> Path | None:
        """The folder's current path, where the system tells it (Linux); None if it was removed."""
        try:
            now = Path(os.readlink(f"/proc/self/fd/{self._descriptor}"))
        except OSError:
            return None
        return now if now.is_dir() else None

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __del__(self) -> None:
        self.close()
