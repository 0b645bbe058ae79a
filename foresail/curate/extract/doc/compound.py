"""Streams inside an OLE file, the form of Office files before 2007: a small file system with tables of sectors.

read_streams(content, {"WordDocument", "0Table"}) -> {"WordDocument": b"\\xec\\xa5…", "0Table": b"…"}

A chain that comes back to itself, or leaves the file, ends where it does so.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterator

from foresail.curate.extract.refused import Refused

HEADER = struct.Struct("<8s16x5H6x9I")
MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENTRY = 128
STREAM, ROOT = 2, 5
LAST = 0xFFFFFFFA  # sector numbers from here on are marks


def read_streams(content: bytes, names: Collection[str]) -> dict[str, bytes]:
    """Those that are there."""
    file = CompoundFile(content)
    return {name: file.read(start, size) for name, start, size in file.entries() if name in names}


class CompoundFile:
    def __init__(self, content: bytes) -> None:
        if len(content) < 512 or not content.startswith(MAGIC):
            raise Refused("damaged", "no OLE file")
        _, _, _, _, self.shift, self.mini_shift, *starts = HEADER.unpack_from(content)
        self.content = content
        if self.shift not in (9, 12) or self.mini_shift != 6:
            raise Refused("damaged", "an OLE file with sectors of another size")
        _, _, self.directory, _, self.cutoff, mini_table, _, tables, _ = starts
        self.table = self.numbers(self.table_sectors(tables))
        self.mini_table = self.numbers(self.chain(mini_table, self.table))
        self.mini = b""  # the stream that holds small streams

    def sector(self, number: int) -> bytes:
        start = (number + 1) << self.shift
        return self.content[start : start + (1 << self.shift)]

    def numbers(self, sectors: Iterator[int]) -> list[int]:
        packed = b"".join(map(self.sector, sectors))
        return list(struct.unpack(f"<{len(packed) // 4}I", packed[: len(packed) // 4 * 4]))

    def table_sectors(self, next_list: int) -> Iterator[int]:
        """Where the table of sectors lies: 109 in the header, more in lists that follow each other."""
        yield from self.inside(struct.unpack_from("<109I", self.content, 76))
        seen = set[int]()
        while next_list < LAST and next_list not in seen:
            seen.add(next_list)
            packed = self.sector(next_list)
            if len(packed) < 8:
                return
            *listed, next_list = struct.unpack(f"<{len(packed) // 4}I", packed)
            yield from self.inside(listed)

    def inside(self, sectors: Collection[int]) -> Iterator[int]:
        most = len(self.content) >> self.shift
        return (number for number in sectors if number < most)

    def chain(self, start: int, table: list[int]) -> Iterator[int]:
        left = len(table)
        while start < len(table) and left:
            yield start
            start = table[start]
            left -= 1

    def entries(self) -> Iterator[tuple[str, int, int]]:
        """Name, first sector and size of the streams at the top; those of embedded files lie in folders."""
        packed = b"".join(map(self.sector, self.chain(self.directory, self.table)))
        if len(packed) < ENTRY or packed[66] != ROOT:
            raise Refused("damaged", "an OLE file without a root")
        waiting = [struct.unpack_from("<I", packed, 76)[0]]
        start = struct.unpack_from("<I", packed, 116)[0]
        self.mini = b"".join(map(self.sector, self.chain(start, self.table)))
        seen = set[int]()
        while waiting:
            number = waiting.pop()
            entry = packed[number * ENTRY : (number + 1) * ENTRY]
            if len(entry) < ENTRY or number in seen:
                continue
            seen.add(number)
            length, kind, _, left, right = struct.unpack_from("<HBBII", entry, 64)
            waiting += (left, right)
            start, size = struct.unpack_from("<II", entry, 116)
            if kind == STREAM and 2 <= length <= 64:
                yield entry[: length - 2].decode("utf-16-le", "replace"), start, size

    def read(self, start: int, size: int) -> bytes:
        if size >= self.cutoff:
            parts = list(map(self.sector, self.chain(start, self.table)))
        else:
            mini = self.mini
            parts = [mini[number << 6 : (number + 1) << 6] for number in self.chain(start, self.mini_table)]
        return b"".join(parts)[:size]
