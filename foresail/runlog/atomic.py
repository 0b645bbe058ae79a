"""Writes files and folders atomically: under a hidden name first, then synced and renamed.

A writer killed at any moment leaves the old content, and at most a leftover (`.tmp-…`, `.old-…`) that
`clean_leftovers` removes at the next start.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ASIDE = ".tmp-"
OLD = ".old-"
FULL_BELOW = 1 << 20  # free bytes below which an unknown failure counts as a full disk

NO_SPACE = "free some space there or move the run to another disk, then resume; what was saved is whole"
NOT_ALLOWED = "make the folder writable, or choose another one with run.root=…"
NO_FILE = "a folder stands where a file is needed; move it away, then resume"
IN_THE_WAY = "a file stands where a folder is needed; move it away, or choose another run.name or run.root"
ADVICE = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), NO_SPACE),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), NOT_ALLOWED),
    **dict.fromkeys((errno.ENOTDIR, errno.EEXIST), IN_THE_WAY),
    errno.EISDIR: NO_FILE,
    errno.EIO: "the disk itself fails; move the run to another one, then resume",
    errno.ENOENT: "it was moved or removed; bring it back, then resume from the last checkpoint",
}


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file atomically: `write_atomically(run / "curves.png", figure.savefig)`."""
    with hidden_sibling(path) as hidden:
        write(hidden)
        sync(hidden)
        os.replace(hidden, path)
        sync(path.parent)


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda hidden: hidden.write_text(text, encoding="utf-8"))


@contextmanager
def replacing_directory(final: Path) -> Iterator[Path]:
    """Yield a folder to fill; it becomes `final` when the block succeeds, and is removed otherwise.

    An existing folder at `final` stays until the new one is in place, under its own name or as `.old-NAME`, which
    `clean_leftovers` restores.
    """
    with hidden_sibling(final) as hidden:
        discard(hidden)
        hidden.mkdir(parents=True)
        yield hidden
        for path in [*hidden.rglob("*"), hidden]:
            sync(path)
        swap_in(hidden, final)


def clean_leftovers(folder: Path) -> None:
    """Remove the leftovers of killed writers in `folder`, and restore a folder from an unfinished swap.

    No other process may be writing there: its files look like leftovers.
    """
    if not folder.is_dir():
        return
    with explained(folder):
        for old in folder.glob(f"{OLD}*"):
            put_back(old)
        for hidden in folder.glob(f"{ASIDE}*"):
            discard(hidden)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn a failure to write in `folder` into an OSError that says where, why and what to do."""
    try:
        yield
    except Exception as error:
        number, cause = diagnose(error, folder)
        if number not in ADVICE or cause.startswith("cannot write in"):
            raise
        if number == errno.ENOENT and folder.is_dir():  # something else is missing
            raise
        raise OSError(number, f"cannot write in {folder}: {cause}; {ADVICE[number]}") from error


def diagnose(error: Exception, folder: Path) -> tuple[int, str]:
    """A failure's errno, 0 if it has none, and its cause in words.

    safetensors and torch raise their own types for a full disk: the first says "… (os error 28)", for the second
    the free space is checked.
    """
    if isinstance(error, OSError) and error.errno is not None:
        return error.errno, error.strerror or str(error)
    if match := re.search(r"\(os error (\d+)\)", str(error)):
        number = int(match[1])
        return number, os.strerror(number)
    if folder.is_dir() and shutil.disk_usage(folder).free < FULL_BELOW:
        return errno.ENOSPC, f"{os.strerror(errno.ENOSPC)} ({error})"
    return 0, str(error)


@contextmanager
def hidden_sibling(final: Path) -> Iterator[Path]:
    """A temporary name next to `final`; a file or folder left under it at the end is removed."""
    # the suffix stays last: some writers choose their format by it
    hidden = final.with_name(f"{ASIDE}{os.getpid()}-{final.name}")
    try:
        # diagnosed before the removal, which frees space on a full disk
        with explained(final.parent):
            yield hidden
    finally:
        discard(hidden)


def swap_in(hidden: Path, final: Path) -> None:
    old = final.with_name(f"{OLD}{final.name}")
    if final.exists():
        discard(old)
        os.replace(final, old)
    try:
        os.replace(hidden, final)
        sync(final.parent)
    finally:
        put_back(old)


def put_back(old: Path) -> None:
    """End a swap: `.old-step_3` goes when there is a `step_3`, and becomes it when there is none."""
    final = old.with_name(old.name.removeprefix(OLD))
    if final.exists():
        discard(old)
    elif old.exists():
        os.replace(old, final)


def sync(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(path: Path) -> None:
    """Remove a file or folder if it exists; failures are ignored."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
