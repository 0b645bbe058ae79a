"""Locks a run's folder, so that only one process writes there.

The system releases the lock whenever the process ends.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from foresail.runlog.atomic import explained

try:
    import fcntl
except ImportError:  # Windows has no such lock
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class FolderInUse(OSError):
    """Another process uses the folder."""


def lock_folder(folder: Path) -> IO[str]:
    """Create and lock the folder, or say which process holds it; closing the file releases the lock."""
    with explained(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = open_lock(folder / NAME)
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        owner = file.read().strip() or "another"
        file.close()
        raise FolderInUse(
            f"{folder} is in use by process {owner}; wait for it, stop it, or choose another "
            "folder (of a run: run.name)"
        ) from None
    except OSError:  # a file system without locks
        return file
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def open_lock(path: Path) -> IO[str]:
    if os.path.lexists(path) and not path.is_file():  # also a broken link
        raise FileExistsError(f"{path} is no file; remove it, then try again")
    return path.open("a+")


def is_locked(folder: Path) -> bool:
    """Whether a process uses the folder; False if the system cannot tell."""
    try:
        with (folder / NAME).open() as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # closing the file releases the lock
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
