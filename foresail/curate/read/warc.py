"""Records of WARC and WET files, packed or not, by fastwarc: responses, resources, texts; no requests.

for record in warc_records(piece): id, outcome = record()      # "crawl/a.warc.gz:17"

A record is one document or one drop: another status than 2xx, a picture, a wrong length. After damage the next
record that begins anywhere behind it is looked for, in files that are plain or packed record by record (.warc.gz).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

from foresail.curate.document import Document, Drop
from foresail.curate.read.budget import Budget, Damaged, budget_of
from foresail.curate.read.files import open_regular
from foresail.curate.read.http import parse_content_type, parse_response
from foresail.curate.read.kinds import KIND_OF_MEDIA, SNIFFED, kind_by_content
from foresail.curate.read.lines import drop_record
from foresail.curate.read.piece import ReadPiece, Record, Source
from foresail.curate.read.resync import next_record
from foresail.curate.read.whole_files import make_document

AT_ONCE = 2**20
ALLOWANCE = 2**17  # of a block over the limit: HTTP headers
FAILURES = 1000  # one after the other without a record between: the rest of the file is noise


@dataclass(frozen=True, slots=True)
class Block:
    """A record as it lies in the file."""

    record_id: str
    url: str
    content_type: str
    content: bytes
    fault: Drop | None  # of its length


def warc_records(piece: ReadPiece) -> Iterator[Record]:
    path, name = Path(piece.folder, piece.files[0]), piece.names[0]
    if path.suffix.lower() in (".xz", ".bz2"):
        drop = Drop("unsupported_packing", "WARC files are plain, .gz, .zst or .lz4; pack this one anew")
        yield partial(drop_record, f"{name}:0", drop)
        return
    try:
        stream = open_regular(path)
    except Damaged as damage:
        yield partial(drop_record, f"{name}:0", damage.drop)
        return
    number = 0
    with stream:
        for block in read_blocks(
            stream, piece.source.max_document_bytes + ALLOWANCE, Budget(budget_of(path))
        ):
            id = f"{name}:{number}"
            number += 1
            if isinstance(block, Drop):
                yield partial(drop_record, id, block)
            else:
                yield partial(block_document, block, id, piece.source)


def read_blocks(stream: IO[bytes], limit: int, budget: Budget) -> Iterator[Block | Drop]:
    """Blocks of documents; a drop for each place where the file is damaged."""
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    documents = (WarcRecordType.response, WarcRecordType.resource, WarcRecordType.conversion)
    place: int | None = 0
    failures = 0
    while place is not None and failures < FAILURES:
        stream.seek(place)
        held: Block | None = None  # until the next record begins where its length says
        seen = place - 1
        try:
            for record in ArchiveIterator(stream, parse_http=False, buffer_size=AT_ONCE):
                failures = 0
                if held is not None:
                    yield held
                seen, held = record.stream_pos, None
                size, content = read_block(record.reader, limit, budget)
                declared = record.headers.get("Content-Length") or ""
                if declared.isdecimal() and size < int(declared[:19]):
                    raise Damaged("truncated", f"byte {seen}: a record of {size:,} bytes says {declared}")
                if record.record_type in documents:
                    held = make_block(record, content, size, limit)
            if held is not None:
                yield held
            return
        except Damaged as damage:
            yield damage.drop
            if budget.left < 0:
                return
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            # a header that does not begin there: the record before it has a wrong length
            wrong_length = held is not None and "nvalid WARC header" in str(error)
            if held is not None and not wrong_length:
                yield held
            yield Drop("damaged", f"behind byte {max(seen, 0)}: {str(error)[:100]}")
        failures += 1
        place = next_record(stream, max(seen, place) + 1)


def read_block(reader: Any, limit: int, budget: Budget) -> tuple[int, bytes]:
    """Its size, and its content unless that is beyond the limit."""
    content = reader.read(limit + 1)
    size = len(content)
    budget.spend(size)
    if size > limit:
        content = b""
        while part := reader.read(AT_ONCE):
            size += len(part)
            budget.spend(len(part))
    return size, content


def make_block(record: Any, content: bytes, size: int, limit: int) -> Block:
    headers = record.headers
    return Block(
        record_id=record.record_id or "",
        url=(headers.get("WARC-Target-URI") or "").strip("<> "),
        content_type=headers.get("Content-Type") or "",
        content=content,
        fault=Drop("too_large", f"{size:,} bytes; {limit:,} are allowed") if size > limit else None,
    )


def block_document(block: Block, id: str, source: Source) -> tuple[str, Document | Drop]:
    if block.fault is not None:
        return id, block.fault
    try:
        outcome = parse_block(block, id, source)
    except Damaged as damage:
        return id, damage.drop
    if isinstance(outcome, Document) and block.record_id:
        outcome.metadata["warc_record_id"] = block.record_id.strip("<>")
    return id, outcome


def parse_block(block: Block, id: str, source: Source) -> Document | Drop:
    content = block.content
    media_type, charset = parse_content_type(block.content_type)
    is_http = media_type == "application/http" or (not media_type and content.startswith(b"HTTP/"))
    if is_http and block.url.startswith(("dns:", "whois:", "ftp:")):
        return Drop("media_type", block.url[:100])
    if is_http:
        response = parse_response(content, source.max_document_bytes)
        if not 200 <= response.status < 300:
            return Drop("http_status", str(response.status))
        content, media_type, charset = response.body, response.media_type, response.charset
    if len(content) > source.max_document_bytes:
        return Drop("too_large", f"{len(content):,} bytes")
    return media_document(content, media_type, charset, source, id=id, url=block.url)


def media_document(
    content: bytes, media_type: str, charset: str, source: Source, *, id: str, url: str
) -> Document | Drop:
    """What a server sends, by the type it states; where it states none, by its first bytes."""
    kind = KIND_OF_MEDIA.get(media_type)
    if kind is None and media_type in ("", "application/octet-stream", "unknown/unknown", "unk"):
        kind = kind_by_content(content[:SNIFFED])
        if kind not in KIND_OF_MEDIA.values():
            kind = None
    if kind is None and content:
        return Drop("media_type", media_type or "unknown")
    return make_document(content, kind or "text", source, id=id, url=url, charset=charset)
