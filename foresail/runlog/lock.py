"""One process at a time in a run's folder: two would write each other's records.

The system lets go of the lock when its process ends, however that comes about.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO

from foresail.runlog.atomic import explained

try:
    import fcntl
except ImportError:  # Windows has no such lock, so none is taken
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class FolderInUse(OSError):
    """Another process is at work there."""


def lock_folder(folder: Path) -> IO[str]:
    """Lock the folder, made where missing, or say who holds it; closing the file releases it."""
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
    if os.path.lexists(path) and not path.is_file():  # a link to nothing too
        raise FileExistsError(f"{path} is no file; remove it, then try again")
    return path.open("a+")


def is_locked(folder: Path) -> bool:
    """Whether a process is at work there; False where the system cannot say."""
    try:
        with (folder / NAME).open() as file:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # closing the file releases the lock
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False
