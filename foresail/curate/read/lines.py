"""Rows of JSONL, compressed or not: a record a line, numbered by the byte at which it begins in the unpacked file.

tail -c +4712 a.jsonl | head -1        shows the row of the document "web/a.jsonl:4711"

A line belongs to the piece in whose bytes it begins. One that is too long is passed over in parts, so memory stays
bounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

import orjson

from foresail.curate.document import Document, Drop
from foresail.curate.read.budget import Damaged
from foresail.curate.read.files import damage_of_stream, open_regular, open_unpacked
from foresail.curate.read.piece import ReadPiece, Record, Source
from foresail.curate.read.row import MOST_VALUES, row_document
from foresail.data.files import excerpt

SKIPPED_AT_ONCE = 2**20
HOPELESS = 64  # a line so many times over the limit ends the file: it is a bomb, not text
LONG_ROW = 2**22  # bytes; in these, signs of values are counted before they become objects
SIGNS = (b"[", b"{", b'":')
BOM = b"\xef\xbb\xbf"


def line_records(piece: ReadPiece) -> Iterator[Record]:
    name = piece.names[0]
    path = Path(piece.folder, piece.files[0])
    try:
        with open_regular(path) if piece.stop is not None else open_unpacked(path) as stream:
            for begin, line in read_lines(stream, piece.start, piece.stop, piece.source.max_document_bytes):
                if isinstance(line, Drop):
                    yield partial(drop_record, f"{name}:{begin}", line)
                elif line.strip():
                    yield partial(parse_line, line, f"{name}:{begin}", piece.source)
    except Damaged as damage:
        yield partial(drop_record, f"{name}:{piece.start}", damage.drop)


def drop_record(id: str, drop: Drop) -> tuple[str, Document | Drop]:
    return id, drop


def read_lines(
    stream: IO[bytes], start: int, stop: int | None, limit: int
) -> Iterator[tuple[int, bytes | Drop]]:
    """Lines with the byte at which they begin; damage ends the stream with a drop."""
    place = start
    if start:
        stream.seek(start - 1)
        # where a line goes on beyond the piece, none begins in it
        place += skip_line(stream, 2**63 if stop is None else stop - start) - 1
    try:
        while stop is None or place < stop:
            with damage_of_stream(f"unpacked byte {place} or later: "):
                line = stream.readline(limit + 1)
            if not line:
                return
            begin, place = place, place + len(line)
            if len(line) <= limit or line.endswith(b"\n"):
                yield begin, line.removeprefix(BOM) if begin == 0 else line
                continue
            with damage_of_stream(f"unpacked byte {begin} or later: "):
                place += skip_line(stream, HOPELESS * limit)
            yield begin, Drop("too_large", f"a line of {place - begin:,} bytes; {limit:,} are allowed")
            if place - begin > HOPELESS * limit:
                return
    except Damaged as damage:
        yield place, damage.drop


def skip_line(stream: IO[bytes], limit: int) -> int:
    """Bytes up to the end of the line, or a little more than `limit`."""
    skipped = 0
    while skipped <= limit and (part := stream.readline(SKIPPED_AT_ONCE)):
        skipped += len(part)
        if part.endswith(b"\n"):
            break
    return skipped


def parse_line(line: bytes, place: str, source: Source) -> tuple[str, Document | Drop]:
    if len(line) > LONG_ROW and sum(map(line.count, SIGNS)) > 4 * MOST_VALUES:
        return place, Drop("too_large", f"a row of far more than {MOST_VALUES:,} values")
    try:
        text = line if source.encoding == "auto" else line.decode(source.encoding)
        return row_document(parse_json(text), place, source)
    except MemoryError:
        return place, Drop("out_of_memory", f"a row of {len(line):,} bytes")
    except UnicodeDecodeError as error:
        return place, Drop("broken_encoding", str(error)[:200])
    except (ValueError, RecursionError) as error:
        start = line[:200].decode(errors="replace").strip()
        return place, Drop("not_json", f"{str(error)[:100]}: {excerpt(start)}")


def parse_json(line: bytes | str) -> object:
    """orjson is strict about halves of characters (\\ud83d alone) and NaN, which json takes, and people write."""
    try:
        return orjson.loads(line)
    except orjson.JSONDecodeError:
        return json.loads(line if isinstance(line, str) else line.decode())
