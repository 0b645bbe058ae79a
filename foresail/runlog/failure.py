"""Writes the error of a failed run to `error.txt` in its folder, where it stays until the run is resumed.

    with noting_failure(run.path):
        train()

`foresail runs` calls such a run failed. Ctrl-C and kills leave no such file.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from foresail.runlog.atomic import explained
from foresail.runlog.held_folder import FolderGone

NAME = "error.txt"


@contextmanager
def noting_failure(folder: Path) -> Iterator[None]:
    """Delete the last start's error; write one that ends the block."""
    with explained(folder / NAME):
        (folder / NAME).unlink(missing_ok=True)
    try:
        yield
    except FolderGone:  # no folder to write to
        raise
    except Exception as error:
        with suppress(OSError):  # such as a full disk: the error itself matters more
            (folder / NAME).write_text(
                f"{error}\n\n{''.join(traceback.format_exception(error))}", encoding="utf-8", errors="replace"
            )
        raise


def read_failure(folder: Path) -> str | None:
    """The first line of the error that ended the run; None where it did not fail."""
    try:
        lines = (folder / NAME).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return lines[0] if lines else "it failed, and could not write why"
