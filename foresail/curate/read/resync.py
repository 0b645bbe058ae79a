"""Where the next record of a damaged WARC file begins.

next_record(stream, 5000) -> 7123; None: there is none behind this byte
"""

from __future__ import annotations

import re
import zlib
from typing import IO

# a plain record, or a gzip member, which is read as one when it unpacks to "WARC/"
BEGIN = re.compile(rb"WARC/[01]\.|\x1f\x8b\x08")
AT_ONCE = 2**20
OVERLAP = 64
TRIED = 512  # bytes of a member


def next_record(stream: IO[bytes], place: int) -> int | None:
    stream.seek(place)
    window = stream.read(AT_ONCE)
    while window:
        for begin in BEGIN.finditer(window):
            if begin.start() + OVERLAP > len(window) and len(window) >= AT_ONCE:
                break
            at = place + begin.start()
            if begin[0][:1] == b"W":
                if at == 0 or window[begin.start() - 1 : begin.start()] == b"\n" or ends_line(stream, at - 1):
                    return at
            elif is_record(stream, at):
                return at
        if len(window) < AT_ONCE:
            return None
        place += len(window) - OVERLAP
        stream.seek(place)
        window = stream.read(AT_ONCE)
    return None


def ends_line(stream: IO[bytes], place: int) -> bool:
    stream.seek(place)
    return stream.read(1) == b"\n"


def is_record(stream: IO[bytes], place: int) -> bool:
    stream.seek(place)
    try:
        return zlib.decompressobj(31).decompress(stream.read(TRIED), 5) == b"WARC/"
    except zlib.error:
        return False
