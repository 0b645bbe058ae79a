"""Errors about too many open files, of any library, become one error that names the limit to raise.

with explaining_files(recipe):
    …    # OSError 24, "unable to open file <…>: Too many open files (24)" … become one OSError
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from foresail.recipe.reading.out_of_memory import in_short
from foresail.recipe.stages.stage import Stage

NUMBERS = (errno.EMFILE, errno.ENFILE)


def is_out_of_files(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in NUMBERS
    return isinstance(error, RuntimeError) and "Too many open files" in str(error)


@contextmanager
def explaining_files(recipe: Stage) -> Iterator[None]:
    """Wraps a run."""
    try:
        yield
    except Exception as error:
        if not is_out_of_files(error):
            raise
        folder = recipe.run.folder
        then = f"foresail resume {folder}" if (folder / "recipe.toml").is_file() else "start it again"
        raise OSError(
            errno.EMFILE,
            f"too many files are open ({in_short(error)}); raise the limit (ulimit -n 65536), then {then}",
        ) from error
