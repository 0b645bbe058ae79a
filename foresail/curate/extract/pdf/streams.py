"""PDFs whose packed streams come to too much are refused before they are drawn.

check_streams(content)       raises Refused("too_large", …) where 1 MB of a page's drawing unpacks to 1 GB

pdfium unpacks the drawing of a page as a whole, and makes an object of each line and letter in it. Pictures and
fonts are not looked at: a text is read without them.
"""

from __future__ import annotations

import re
import zlib

from foresail.curate.extract.refused import Refused

MAX_DRAWING = 2**25  # bytes, of one stream; a page of a book has some 10,000
HARMLESS = MAX_DRAWING // 1032  # packed bytes that cannot come to more
AT_ONCE = 2**20
BEGIN = re.compile(rb"stream\r?\n")
OTHERS = re.compile(rb"/Subtype\s*/Image|/Length[123]\b|/FontFile|/Metadata|/EmbeddedFile|/Alternate")
TWICE = re.compile(rb"/Fl(?:ateDecode)?\s*/Fl")
DICTIONARY = 2000  # bytes before the stream in which its keys stand


def check_streams(content: bytes) -> None:
    """Raises Refused."""
    for begin in BEGIN.finditer(content):
        start = begin.end()
        keys = content[max(0, start - DICTIONARY) : start]
        keys = keys[keys.rfind(b"obj") :]
        if TWICE.search(keys):
            raise Refused("damaged", "a stream that is packed twice")
        if (
            b"/Fl" in keys
            and not OTHERS.search(keys)
            and content.find(b"endstream", start, start + HARMLESS) < 0
        ):
            check_size(content, start)


def check_size(content: bytes, start: int) -> None:
    unpacker = zlib.decompressobj()
    size, rest = 0, content[start : start + AT_ONCE]
    place = start + len(rest)
    try:
        while rest and not unpacker.eof:
            size += len(unpacker.decompress(rest, AT_ONCE))
            if size > MAX_DRAWING:
                raise Refused("too_large", f"a page's drawing of more than {MAX_DRAWING:,} bytes")
            rest = unpacker.unconsumed_tail
            if not rest:
                rest = content[place : place + AT_ONCE]
                place += len(rest)
    except zlib.error:
        return  # not packed so, or damaged: its reader says
