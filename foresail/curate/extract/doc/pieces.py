"""The text of a .doc file (Word 97 to 2003): its pieces in their order, and what paragraphs are.

word = WordFile(content)
for paragraph in word.paragraphs(): …         # Paragraph("Chapter 1", "\\r", Properties(style=1))

Text lies in pieces, in one byte or two a character; properties of paragraphs, by the bytes at which these end.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate

from foresail.curate.extract.doc.compound import read_streams
from foresail.curate.extract.refused import Refused

MAGIC, OLD_MAGIC = 0xA5EC, 0xA5DC
WORD_95 = 104
MAX_CHARS = 20_000_000
ENCRYPTED, OTHER_TABLE = 0x0100, 0x0200  # flags
COUNTS = 0x4C  # characters of the text, footnotes, headers, macros, comments and endnotes
PAPX, CLX = 0x102, 0x1A2  # where the tables of paragraphs and of pieces lie
PAGE = 512  # bytes of a page of properties
IN_TABLE, ROW_END, LIST, LIST_LEVEL = 0x2416, 0x2417, 0x460B, 0x260A  # properties
SIZES = (1, 1, 2, 4, 2, 2, None, 3)  # of their values, by the upper bits
ENDS = "\r\x07\x0c"  # of paragraphs, cells, sections


@dataclass(frozen=True, kw_only=True, slots=True)
class Properties:
    style: int = 0
    in_table: bool = False
    is_row_end: bool = False
    is_item: bool = False
    level: int = 0


@dataclass(frozen=True, slots=True)
class Paragraph:
    """`text` as the file has it, with its control characters; `end`: of a paragraph or of a cell."""

    text: str
    end: str
    properties: Properties


@dataclass(frozen=True, slots=True)
class Piece:
    """Characters `first` to `stop`, which lie from byte `place` on, in `width` bytes each."""

    first: int
    stop: int
    place: int
    width: int


class WordFile:
    def __init__(self, content: bytes) -> None:
        streams = read_streams(content, {"WordDocument", "0Table", "1Table"})
        self.main = streams.get("WordDocument", b"")
        if len(self.main) < 4 or self.number(0, "H") not in (MAGIC, OLD_MAGIC):
            raise Refused("damaged", "an Office file that is no Word document")
        if self.number(0, "H") == OLD_MAGIC or self.number(2, "H") <= WORD_95:
            raise Refused("doc_unsupported", "a .doc of Word 95 or before; convert it with LibreOffice")
        if len(self.main) < CLX + 8:
            raise Refused("truncated", "a Word document that ends in its header")
        flags = self.number(10, "H")
        if flags & ENCRYPTED:
            raise Refused("encrypted", "a Word document with a password")
        self.table = streams.get("1Table" if flags & OTHER_TABLE else "0Table", b"")
        counts = struct.unpack_from("<6I", self.main, COUNTS)
        *_, self.text_end, self.footnotes_end, _, _, self.endnotes, self.end = 0, *accumulate(counts)
        self.pieces = list(self.read_pieces())
        if not self.pieces:
            raise Refused("damaged", "a Word document without a table of its pieces")
        self.runs = sorted(self.read_runs(), key=lambda run: run[0])
        self.run_starts = [start for start, _ in self.runs]

    def number(self, place: int, kind: str) -> int:
        value: int = struct.unpack_from(f"<{kind}", self.main, place)[0]
        return value

    def entry(self, place: int) -> bytes:
        """Of the table stream, what the header says lies there."""
        start, size = struct.unpack_from("<II", self.main, place)
        return self.table[start : start + size]

    def read_pieces(self) -> Iterator[Piece]:
        clx = self.entry(CLX)
        place = 0
        while place + 5 <= len(clx) and clx[place] == 1:  # properties of pieces
            place += 3 + struct.unpack_from("<H", clx, place + 1)[0]
        if place + 5 > len(clx) or clx[place] != 2:
            return
        table = clx[place + 5 : place + 5 + struct.unpack_from("<I", clx, place + 1)[0]]
        count = (len(table) - 4) // 12
        bounds = struct.unpack_from(f"<{max(count, -1) + 1}I", table)
        for index in range(count):
            where = struct.unpack_from("<I", table, 4 * (count + 1) + 8 * index + 2)[0]
            is_narrow, start = bool(where & 0x40000000), where & 0x3FFFFFFF
            first, stop = bounds[index], min(bounds[index + 1], self.end)
            if first < stop <= MAX_CHARS:
                yield Piece(first, stop, start // 2 if is_narrow else start, 1 if is_narrow else 2)
            elif first < stop:
                raise Refused("too_large", f"more than {MAX_CHARS:,} characters")

    def read_runs(self) -> Iterator[tuple[int, Properties]]:
        """From which byte on paragraphs have which properties."""
        table = self.entry(PAPX)
        count = (len(table) - 4) // 8
        for index in range(count):
            number = struct.unpack_from("<I", table, 4 * (count + 1) + 4 * index)[0] & 0x3FFFFF
            page = self.main[number * PAGE : (number + 1) * PAGE]
            if len(page) < PAGE:
                continue
            runs = page[-1]
            if 4 * (runs + 1) + 13 * runs >= PAGE:
                continue
            starts = struct.unpack_from(f"<{runs + 1}I", page)
            for run in range(runs):
                offset = 2 * page[4 * (runs + 1) + 13 * run]
                yield starts[run], read_properties(page, offset) if offset else Properties()

    def properties_at(self, place: int) -> Properties:
        run = bisect_right(self.run_starts, place) - 1
        return self.runs[run][1] if run >= 0 else Properties()

    def paragraphs(self, first: int, stop: int) -> Iterator[Paragraph]:
        """Of characters number `first` to `stop`."""
        parts: list[str] = []
        for piece in self.pieces:
            start, end = max(first, piece.first), min(stop, piece.stop)
            if start >= end:
                continue
            place = piece.place + (start - piece.first) * piece.width
            packed = self.main[place : place + (end - start) * piece.width]
            text = packed.decode("cp1252" if piece.width == 1 else "utf-16-le", "replace")
            begin = 0
            for at, letter in enumerate(text):
                if letter in ENDS:
                    parts.append(text[begin:at])
                    yield Paragraph("".join(parts), letter, self.properties_at(place + at * piece.width))
                    parts, begin = [], at + 1
            parts.append(text[begin:])
        if any(parts):
            yield Paragraph("".join(parts), "\r", Properties())


def read_properties(page: bytes, offset: int) -> Properties:
    """A style's number, then properties: two bytes that name each, and its value."""
    size = page[offset]
    start = offset + 1
    if size == 0 and start < PAGE:
        size, start = page[start] * 2, start + 1
    else:
        size = 2 * size - 1
    packed = page[start : start + max(size, 0)]
    if len(packed) < 2:
        return Properties()
    style = struct.unpack_from("<H", packed)[0]
    values: dict[int, int] = {}
    place = 2
    while place + 3 <= len(packed):
        name = struct.unpack_from("<H", packed, place)[0]
        width = SIZES[name >> 13]
        place += 2
        if width is None:  # its first byte says how long it is
            place += 1 + packed[place]
            continue
        values[name] = int.from_bytes(packed[place : place + width], "little")
        place += width
    return Properties(
        style=style,
        in_table=bool(values.get(IN_TABLE)),
        is_row_end=bool(values.get(ROW_END)),
        is_item=values.get(LIST, 0) not in (0, 0x7FFF, 0xF801),
        level=min(values.get(LIST_LEVEL, 0), 8),
    )
