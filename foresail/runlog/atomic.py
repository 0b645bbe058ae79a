"""Files and folders that are whole or not there: written aside under a hidden name, synced, then renamed.

A writer killed at any moment leaves what stood before, and at most a leftover (`.tmp-…`, `.old-…`)
that `clean_leftovers` tidies at the next start.
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
FULL_BELOW = 1 << 20  # bytes free under which a failure of unknown kind is blamed on the disk

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


def write_aside(path: Path, write: Callable[[Path], object]) -> None:
    """Put a file in place in one move: `write_aside(run / "curves.png", figure.savefig)`."""
    with hidden_sibling(path) as hidden:
        write(hidden)
        sync(hidden)
        os.replace(hidden, path)
        sync(path.parent)


def write_text(path: Path, text: str) -> None:
    write_aside(path, lambda hidden: hidden.write_text(text, encoding="utf-8"))


@contextmanager
def replacing_directory(final: Path) -> Iterator[Path]:
    """Fill the folder this yields; it becomes `final` when the block ends well, and vanishes otherwise.

    A folder that already stands at `final` is swapped out: until the new one is in place it remains,
    under its own name or as `.old-NAME`, from where `clean_leftovers` brings it back.
    """
    with hidden_sibling(final) as hidden:
        discard(hidden)
        hidden.mkdir(parents=True)
        yield hidden
        for path in [*hidden.rglob("*"), hidden]:
            sync(path)
        swap_in(hidden, final)


def clean_leftovers(folder: Path) -> None:
    """Remove what killed writers left in `folder`, and bring back a folder caught in the midst of a swap.

    Call it only where no other process writes: a living writer's work looks just like a leftover.
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
    """A failure to write in `folder` becomes an OSError of its kind that says where, why and what to do."""
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
    """The system's number for a failure, 0 if it has none, and the cause in words.

    safetensors and torch have types of their own for a full disk: the one says "… (os error 28)", of the
    other it is guessed by looking at the disk.
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
    """A name next to `final` to write under; whatever still bears it at the end is removed."""
    # the suffix stays last, for writers that choose a format by it
    hidden = final.with_name(f"{ASIDE}{os.getpid()}-{final.name}")
    try:
        # explained first, removed after: a full disk must be seen before space is freed on it
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
    """Have the disk hold a file's bytes, or a folder's names, before going on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def discard(path: Path) -> None:
    """Remove a file or folder if it is there; a leftover that cannot be removed is no reason to stop."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()
