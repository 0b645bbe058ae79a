"""Finds the files of a source, and opens them: regular files only, unpacked on the way.

list_files("crawl") -> [Path("crawl/a.html"), Path("crawl/b/c.pdf")]

Links to folders below a source are not followed, so that a link to its own parent is no endless tree. A pipe or a
device that has the name of a page is not opened.
"""

from __future__ import annotations

import errno
import lzma
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from glob import has_magic
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

from foresail.curate.read.budget import Budgeted, Damaged, budget_of
from foresail.curate.read.kinds import BY_SUFFIX, PACKED
from foresail.curate.read.xz import open_xz
from foresail.data.files import open_bytes
from foresail.data.rows import explain_missing

# of one file, not of the machine: a full table of open files or a failing disk is no fault of a document
OF_THE_FILE = (errno.ENOENT, errno.EACCES, errno.EPERM, errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO)
BUFFER = 2**17


def default_name(path: str) -> str:
    """default_name("data/web.warc.gz") -> "web"; of a glob, its last folder that has no star."""
    parts = [part for part in Path(path).parts if not has_magic(part) and part not in ("/", "..")]
    name = parts[-1] if parts else "source"
    stem = name
    while (suffix := Path(stem).suffix.lower()) and (suffix in PACKED or suffix in BY_SUFFIX):
        stem = stem[: -len(suffix)]
    return stem or name


def list_files(path: str) -> tuple[Path, list[str]]:
    """The folder and the files below it, by relative name, sorted; hidden ones are passed over."""
    place = Path(path)
    if has_magic(path) and not place.exists():
        anchor = Path(*[part for part, clean in leading_parts(place) if clean])
        pattern = str(place.relative_to(anchor))
        names: set[str] = set()
        for match in anchor.glob(pattern):
            relative = match.relative_to(anchor)
            if any(part.startswith(".") for part in relative.parts) and "/." not in f"/{pattern}":
                continue
            if not match.is_dir():
                names.add(str(relative))
            elif not match.is_symlink():  # a star that meets a folder means what is in it
                names |= {str(relative / name) for name in below(match)}
        if not names:
            raise ValueError(f"no file matches {path}; correct the pattern, or name a folder")
        return anchor, sorted(names, key=os.fsencode)
    if place.is_dir():
        return place, sorted(below(place), key=os.fsencode)
    if not place.exists():
        raise ValueError(explain_missing(place))
    return place.parent, [place.name]


def leading_parts(path: Path) -> Iterator[tuple[str, bool]]:
    clean = True
    for part in path.parts:
        clean = clean and not has_magic(part)
        yield part, clean


def below(folder: Path) -> Iterator[str]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith("."):
                yield os.path.relpath(os.path.join(parent, name), folder)


def open_regular(path: Path) -> IO[bytes]:
    """The file as it lies there. A pipe is not waited for."""
    with of_the_file():
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Damaged("unreadable", "neither a file nor a link to one")
    return os.fdopen(descriptor, "rb")


def open_unpacked(path: Path) -> IO[bytes]:
    """Its content, unpacked as one reads on, up to a budget; at most a few MB of it are in memory."""
    open_regular(path).close()
    with of_the_file():
        if path.suffix.lower() not in PACKED:
            return path.open("rb")
        return BufferedReader(Budgeted(open_packed(path), budget_of(path)), BUFFER)


def open_packed(path: Path) -> IO[bytes]:
    match path.suffix.lower():
        case ".zst" | ".lz4" as suffix:
            import pyarrow

            # the reader of `zstandard` takes windows of 2 GB, and half a GB of zeros in one bite
            codec = suffix[1:].replace("zst", "zstd")
            packed: IO[bytes] = pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), codec)
            return packed
        case ".xz":
            return open_xz(path)
    stream: IO[bytes] = open_bytes(path)
    return stream


@contextmanager
def of_the_file() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in OF_THE_FILE:
            raise Damaged("unreadable", error.strerror or str(error)) from error
        raise


@contextmanager
def damage_of_stream(place: Any = "") -> Iterator[None]:
    """What a decompressor raises becomes `Damaged`; what the disk raises stays an OSError."""
    try:
        yield
    except EOFError as error:
        raise Damaged("truncated", f"{place}{error}") from error
    except (zlib.error, lzma.LZMAError) as error:
        raise Damaged("damaged", f"{place}{error}") from error
    except OSError as error:
        if error.errno is not None:
            raise
        reason = "truncated" if "runcated" in str(error) else "damaged"
        raise Damaged(reason, f"{place}{error}") from error


def read_whole(path: Path, limit: int) -> bytes:
    """All of a file, unpacked; `Damaged` where it is longer than `limit` bytes or breaks off."""
    with open_unpacked(path) as stream, damage_of_stream():
        content = stream.read(limit + 1)
    if len(content) > limit:
        raise Damaged("too_large", f"more than {limit:,} bytes")
    return content
