"""A .doc file of Word 97 to 2003, written by hand: paragraphs with their properties, in pieces of one or two bytes.

small_doc([("Title", "\\r", HEADING), ("a", "\\x07", CELL), …]) -> b"\\xd0\\xcf\\x11\\xe0…"
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

PLAIN, HEADING = b"\x00\x00", b"\x02\x00"  # a style's number; 2 is a heading of the second level
CELL = PLAIN + b"\x16\x24\x01"
ROW_END = CELL + b"\x17\x24\x01"
ITEM = PLAIN + b"\x0b\x46\x01\x00" + b"\x0a\x26\x01"
SECTOR, FREE, LAST, TABLE = 512, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD
TEXT = 1024  # where the text begins, behind the header
SMALLEST = 4096  # bytes of a stream that is not in the stream of small ones


def small_doc(paragraphs: Sequence[tuple[str, str, bytes]], *, notes: str = "", flags: int = 0x0200) -> bytes:
    """Text, its end and its properties; `notes` are footnotes."""
    body, bounds, places, runs = bytearray(), [0], [], []
    parts = [*paragraphs, *([(notes, "\r", PLAIN)] if notes else [])]
    for text, end, properties in parts:
        is_narrow = text.isascii()
        start = TEXT + len(body)
        runs.append((start, properties))
        body += (text + end).encode("ascii" if is_narrow else "utf-16-le")
        places.append((start * 2) | 0x40000000 if is_narrow else start)
        bounds.append(bounds[-1] + len(text) + len(end))
    length = bounds[-1]
    main = bytearray(TEXT) + body
    main += bytes(-len(main) % SECTOR)
    page = len(main) // SECTOR
    main += property_page(runs, TEXT + len(body))
    pieces = struct.pack(f"<{len(bounds)}I", *bounds)
    pieces += b"".join(struct.pack("<HIH", 0, place, 0) for place in places)
    clx = b"\x02" + struct.pack("<I", len(pieces)) + pieces
    pages = struct.pack("<III", TEXT, TEXT + len(body), page)
    struct.pack_into("<HH", main, 0, 0xA5EC, 193)
    struct.pack_into("<H", main, 10, flags)
    note_length = len(notes) + 1 if notes else 0
    struct.pack_into("<6I", main, 0x4C, length - note_length, note_length, 0, 0, 0, 0)
    struct.pack_into("<II", main, 0x102, 0, len(pages))
    struct.pack_into("<II", main, 0x1A2, len(pages), len(clx))
    return compound({"WordDocument": bytes(main), "1Table": pages + clx})


def property_page(runs: Sequence[tuple[int, bytes]], end: int) -> bytes:
    page = bytearray(SECTOR)
    starts = [start for start, _ in runs] + [end]
    struct.pack_into(f"<{len(starts)}I", page, 0, *starts)
    free = SECTOR - 2
    for number, (_, properties) in enumerate(runs):
        entry = properties if len(properties) % 2 else properties + b"\0"
        free -= len(entry) + 1 + (len(entry) + 1) % 2
        page[free : free + 1 + len(entry)] = bytes([(len(entry) + 1) // 2]) + entry
        page[4 * len(starts) + 13 * number] = free // 2
    page[-1] = len(runs)
    return bytes(page)


def compound(streams: dict[str, bytes]) -> bytes:
    """An OLE file: a sector of the table of sectors, one of the directory, then the streams."""
    table, content, entries = [TABLE, LAST], b"", [directory_entry("Root Entry", 5, 1, LAST, 0)]
    for number, (name, stream) in enumerate(streams.items(), start=1):
        stream = stream.ljust(SMALLEST, b"\0")
        stream += bytes(-len(stream) % SECTOR)
        first, sectors = len(table), len(stream) // SECTOR
        table += [*range(first + 1, first + sectors), LAST]
        content += stream
        right = number + 1 if number < len(streams) else FREE
        entries.append(directory_entry(name, 2, FREE, first, len(stream), right))
    assert len(table) <= 128 and len(entries) <= 4
    header = struct.pack("<8s16x5H6x", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 62, 3, 0xFFFE, 9, 6)
    header += struct.pack("<9I", 0, 1, 1, 0, SMALLEST, LAST, 0, LAST, 0)
    header += struct.pack("<109I", 0, *[FREE] * 108)
    directory = b"".join(entries).ljust(SECTOR, b"\0")
    return header + struct.pack("<128I", *table, *[FREE] * (128 - len(table))) + directory + content


def directory_entry(name: str, kind: int, child: int, start: int, size: int, right: int = FREE) -> bytes:
    coded = (name + "\0").encode("utf-16-le")
    entry = coded.ljust(64, b"\0") + struct.pack("<HBBIII", len(coded), kind, 1, FREE, right, child)
    return entry.ljust(116, b"\0") + struct.pack("<IQ", start, size)


def old_letter() -> bytes:
    return small_doc(
        [
            ("Ships\x02", "\r", HEADING),
            ("Dear \x13 HYPERLINK x \x14crew\x15, we sail.\x0bSoon.", "\r", PLAIN),
            ("มนุษย์ทั้งหลายเกิดมามีอิสระ", "\r", PLAIN),
            ("rope", "\r", ITEM),
            *[
                (text, "\x07", ROW_END if not text else CELL)
                for text in ("port", "wind", "", "Bergen", "5 Bft", "")
            ],
            ("The end.", "\r", PLAIN),
        ],
        notes="\x02 A note.",
    )
