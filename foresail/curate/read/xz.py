"""Reads .xz files with a limit of memory: a header may ask for 4 GB. All streams of a file are read.

open_xz(Path("a.jsonl.xz")).read(10) -> b'{"text": "'
"""

from __future__ import annotations

import io
import lzma
from pathlib import Path
from typing import IO, Any, cast

MEMORY = 2**28  # bytes; files of `xz -9` need 65 MB
AT_ONCE = 2**16


def open_xz(path: Path) -> IO[bytes]:
    return cast(IO[bytes], Xz(path.open("rb")))


class Xz(io.RawIOBase):
    def __init__(self, packed: IO[bytes]) -> None:
        self.packed = packed
        self.unpacker = new_unpacker()

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while True:
            if self.unpacker.eof:
                rest = (self.unpacker.unused_data or self.packed.read(AT_ONCE)).lstrip(b"\0")
                if not rest:
                    return 0
                self.unpacker = new_unpacker()
            else:
                rest = self.packed.read(AT_ONCE) if self.unpacker.needs_input else b""
                if not rest and self.unpacker.needs_input:
                    raise EOFError("the compressed file breaks off")
            part = self.unpacker.decompress(rest, len(room))
            if part:
                room[: len(part)] = part
                return len(part)

    def close(self) -> None:
        self.packed.close()
        super().close()


def new_unpacker() -> lzma.LZMADecompressor:
    return lzma.LZMADecompressor(lzma.FORMAT_AUTO, memlimit=MEMORY)
