r"""An HTTP response as an archive holds it: status, headers, body; chunks and compression undone up to a limit.

parse_response(b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=tis-620\r\n\r\n<p>…", limit=2**20)
    -> Response(status=200, media_type="text/html", charset="tis-620", body=b"<p>…")

Archives are not strict: many hold bodies that are decoded already, beside headers that say the opposite.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from io import BytesIO

from foresail.curate.read.budget import RATIO, Damaged

LEAST_BODY = 2**22  # bytes that any body may unpack to; beyond that, RATIO times its size
HEADER_BYTES = 2**17
END_OF_HEADERS = re.compile(rb"\r?\n\r?\n")
CHARSET = re.compile(r"""charset\s*=\s*["']?\s*([A-Za-z0-9._:-]+)""")
CHUNK_SIZE = re.compile(rb"\s*([0-9A-Fa-f]{1,8})[^\r\n]{0,1000}\r?\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class Response:
    status: int
    media_type: str
    charset: str
    body: bytes


def parse_response(block: bytes, limit: int) -> Response:
    """`Damaged` where it is no response or its body is longer than `limit`."""
    end = END_OF_HEADERS.search(block, 0, HEADER_BYTES)
    if end is None or not block.startswith((b"HTTP/", b"ICY ")):
        raise Damaged("damaged", "no HTTP response")
    status_line, *lines = block[: end.start()].decode("latin-1").splitlines()
    status = status_line.split(None, 2)[1:2]
    if not status or not status[0].isdecimal() or not status[0].isascii():
        raise Damaged("damaged", f"HTTP status line {status_line[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            headers.setdefault(name.strip().lower(), value.strip())
    body = block[end.end() :]
    if "chunked" in headers.get("transfer-encoding", "").lower():
        body = join_chunks(body)
    codings = [coding.strip().lower() for coding in headers.get("content-encoding", "").split(",")]
    for coding in reversed(codings[-4:]):  # nobody packs a page five times
        body = unpack(body, coding, min(limit, LEAST_BODY + RATIO * len(body)))
    if len(body) > limit:
        raise Damaged("too_large", f"{len(body):,} bytes; {limit:,} are allowed")
    media_type, charset = parse_content_type(headers.get("content-type", ""))
    return Response(status=int(status[0][:9]), media_type=media_type, charset=charset, body=body)


def parse_content_type(value: str) -> tuple[str, str]:
    """parse_content_type('Text/HTML; charset="UTF-8"') -> ("text/html", "utf-8")"""
    charset = CHARSET.search(value[:1000].lower())
    return value.partition(";")[0].strip().lower()[:100], charset[1] if charset else ""


def join_chunks(body: bytes) -> bytes:
    """A body that is not in chunks stays as it is; one that breaks off gives what there is."""
    parts: list[bytes] = []
    place = 0
    while size := CHUNK_SIZE.match(body, place):
        length = int(size[1], 16)
        if length == 0:
            return b"".join(parts)
        parts.append(body[size.end() : size.end() + length])
        place = size.end() + length
    return b"".join(parts) if parts else body


def unpack(body: bytes, coding: str, limit: int) -> bytes:
    """The body as it is where it is not in this coding."""
    if coding in ("gzip", "x-gzip") and body.startswith(b"\x1f\x8b"):
        return inflate(body, 31, limit)
    if coding == "deflate":
        # the standard means zlib's frame; half the servers leave it out
        zlib_frame = len(body) > 1 and body[0] & 15 == 8 and (body[0] << 8 | body[1]) % 31 == 0
        return inflate(body, 15 if zlib_frame else -15, limit)
    if coding in ("br", "zstd"):
        from fastwarc.stream_io import BrotliReader, ZstdReader

        reader = (BrotliReader if coding == "br" else ZstdReader)(BytesIO(body))
        return read_parts(reader, body, limit)
    return body


def inflate(body: bytes, wbits: int, limit: int) -> bytes:
    unpacker = zlib.decompressobj(wbits)
    try:
        plain = unpacker.decompress(body, limit + 1)
    except zlib.error:
        return body  # was it decoded before? Then it is the page
    if len(plain) > limit:
        raise Damaged("too_large", f"unpacks to more than {limit:,} bytes")
    if not unpacker.eof:
        raise Damaged("truncated", f"its compressed body breaks off after {len(plain):,} unpacked bytes")
    return plain


def read_parts(reader: object, body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    try:
        while size <= limit and (part := reader.read(2**16)):  # type: ignore[attr-defined]
            parts.append(part)
            size += len(part)
    except (OSError, ValueError) as error:
        if not parts:
            return body
        raise Damaged("truncated", f"its compressed body breaks off: {error}") from error
    if size > limit:
        raise Damaged("too_large", f"unpacks to more than {limit:,} bytes")
    return b"".join(parts)
