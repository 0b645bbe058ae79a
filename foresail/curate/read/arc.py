"""Records of ARC files, the form before WARC: a line with address, IP, date, type and length, then the response.

http://a.org/ 10.0.0.1 20080430204825 text/html 1234
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO

from foresail.curate.document import Document, Drop
from foresail.curate.read.budget import Damaged
from foresail.curate.read.files import damage_of_stream, open_unpacked
from foresail.curate.read.http import parse_response
from foresail.curate.read.lines import drop_record, skip_line
from foresail.curate.read.piece import ReadPiece, Record, Source
from foresail.curate.read.warc import ALLOWANCE, AT_ONCE, media_document

# version 2 has status, checksum, … between type and length
HEADER = re.compile(rb"(\S{1,20000}) (\S+) (\d{8,14}) (\S+) (?:.{0,500} )?(\d{1,12})\r?\n")
LONGEST_HEADER = 2**15


def arc_records(piece: ReadPiece) -> Iterator[Record]:
    path, name = Path(piece.folder, piece.files[0]), piece.names[0]
    limit = piece.source.max_document_bytes + ALLOWANCE
    number = 0
    try:
        with open_unpacked(path) as stream, damage_of_stream():
            for url, media_type, content in read_arc(stream, limit):
                if isinstance(content, Drop):
                    yield partial(drop_record, f"{name}:{number}", content)
                elif not url.startswith(("filedesc:", "dns:")):
                    yield partial(arc_document, url, media_type, content, f"{name}:{number}", piece.source)
                else:
                    continue
                number += 1
    except Damaged as damage:
        yield partial(drop_record, f"{name}:{number}", damage.drop)


def read_arc(stream: IO[bytes], limit: int) -> Iterator[tuple[str, str, bytes | Drop]]:
    lost = False  # behind a wrong length: lines are passed over up to the next header, with one drop
    while line := stream.readline(LONGEST_HEADER):
        header = HEADER.fullmatch(line)
        if header is None:
            if not line.endswith(b"\n"):
                skip_line(stream, 2**63)
            if line.strip() and not lost:
                yield "", "", Drop("damaged", "no ARC header where the last record's length says")
                lost = True
            continue
        lost = False
        url, media_type, length = (
            header[1].decode(errors="replace"),
            header[4].decode("latin-1"),
            int(header[5]),
        )
        content = stream.read(min(length, limit + 1))
        size = len(content)
        while size < length and (part := stream.read(min(AT_ONCE, length - size))):
            size += len(part)
        if size < length:
            yield url, media_type, Drop("truncated", f"a record of {size:,} bytes says {length:,}")
        elif length > limit:
            yield url, media_type, Drop("too_large", f"{length:,} bytes; {limit:,} are allowed")
        else:
            yield url, media_type, content


def arc_document(
    url: str, media_type: str, content: bytes, id: str, source: Source
) -> tuple[str, Document | Drop]:
    try:
        if not content.startswith(b"HTTP/"):
            return id, media_document(content, media_type.lower(), "", source, id=id, url=url)
        response = parse_response(content, source.max_document_bytes)
    except Damaged as damage:
        return id, damage.drop
    if not 200 <= response.status < 300:
        return id, Drop("http_status", str(response.status))
    return id, media_document(response.body, response.media_type, response.charset, source, id=id, url=url)
