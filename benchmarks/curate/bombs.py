"""Files that are made to crash, to hang or to fill the memory of whoever reads them.

write_bombs(Path("bombs"), size=2**30) -> ["zeros.jsonl.gz", "entities.docx", "pages.pdf", …]

`size` is what a bomb unpacks to: 1 GB, or little in tests.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection
from pathlib import Path

from bomb_packages import PACKAGES
from bomb_pages import PAGES
from bomb_pdfs import PDFS
from bomb_rows import ROWS
from bomb_streams import STREAMS, zeros

BOMBS = STREAMS | PACKAGES | ROWS | PAGES | PDFS


def write_bombs(folder: Path, size: int = 2**30, names: Collection[str] | None = None) -> list[str]:
    """All of them, or those of some names."""
    written = []
    for name, make in BOMBS.items():
        if names is None or name in names:
            (folder / name).write_bytes(make(size))
            written.append(name)
    for name, write in LONG.items():
        if names is None or name in names:
            write(folder / name, size)
            written.append(name)
    return written


def sparse(content: bytes) -> Callable[[Path, int], None]:
    """A file with a hole: 1 GB of NUL bytes that take no room on the disk."""

    def write(path: Path, size: int) -> None:
        with path.open("wb") as file:
            file.write(content)
            file.truncate(size)

    return write


def one_line(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.writelines(zeros(size))


def write_links(folder: Path) -> None:
    """Links to themselves, to a parent, to devices; a pipe; names that no one expects."""
    for name, target in {
        "self.html": "self.html",
        "parent": "..",
        "root": "/",
        "zero.txt": "/dev/zero",
        "random.jsonl": "/dev/urandom",
        "secret.txt": "/proc/self/environ",
        "nowhere.pdf": "nowhere/at/all",
        "folder.html": ".",
    }.items():
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe.html")
    for raw in (
        b"line\nbreak.txt",
        b"broken-\xff\xfe.txt",
        b"\x1b[2J\r.txt",
        b"-rf.txt",
        b"a" * 250 + b".txt",
    ):
        (Path(os.fsdecode(bytes(folder) + b"/" + raw))).write_bytes(b"A file with a strange name.\n")
    deep = folder
    for _ in range(100):
        deep /= "d"
    deep.mkdir(parents=True)
    (deep / "deep.txt").write_text("A file in a hundred folders.\n")


LONG: dict[str, Callable[[Path, int], None]] = {
    "hole.jsonl": sparse(b'{"text": "a row"}\n'),
    "hole.txt": sparse(b"A text"),
    "hole.html": sparse(b"<p>A page"),
    "hole.pdf": sparse(b"%PDF-1.7\n"),
    "hole.docx": sparse(b"PK\x03\x04 word/"),
    "hole.warc": sparse(b"WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 1000000000\r\n\r\n"),
    "hole.parquet": sparse(b"PAR1"),
    "line.jsonl": one_line,
}
