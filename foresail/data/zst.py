"""Reads and writes .zst files. All frames are read: `pzstd` and `cat a.zst b.zst` make several.

    open_zst(Path("web.jsonl.zst")).readline() -> b'{"text": …'
    with create_zst(Path("web.jsonl.zst")) as file: file.write(b'{"text": …')

The reader of `zstandard` has no lines, ends with the first frame, and takes a truncated file for a whole one.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

AT_ONCE = 2**11  # compressed bytes: what they come to stays in memory, at most 64 MB
MAX_WINDOW = 2**31  # bytes, as `zstd --long=31` writes


def open_zst(path: Path) -> IO[bytes]:
    return io.BufferedReader(Unpacked(path))


class Unpacked(io.RawIOBase):
    def __init__(self, path: Path) -> None:
        self._content = unpack(path)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, room: memoryview) -> int:  # type: ignore[override]
        while not self._rest:
            unpacked = next(self._content, None)
            if unpacked is None:
                return 0
            self._rest = memoryview(unpacked)
        size = min(len(room), len(self._rest))
        room[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def create_zst(path: Path, level: int = 3) -> IO[bytes]:
    writer: IO[bytes] = import_zstandard(path).ZstdCompressor(level=level).stream_writer(path.open("wb"))
    return writer


def import_zstandard(path: Path) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise ImportError(f"{path} needs zstandard: pip install zstandard; or compress it as .gz") from error
    return zstandard


def unpack(path: Path) -> Iterator[bytes]:
    zstandard = import_zstandard(path)
    frame = None
    with path.open("rb") as file:
        while packed := file.read(AT_ONCE):
            while packed:
                if frame is None:
                    frame = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW).decompressobj()
                try:
                    yield frame.decompress(packed)
                except zstandard.ZstdError as error:
                    raise EOFError(str(error)) from error
                packed = frame.unused_data
                frame = None if frame.eof else frame
    if frame is not None:
        raise EOFError("its last frame has no end")
