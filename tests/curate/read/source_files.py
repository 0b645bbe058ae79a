"""Small sources, and what is read of them."""

from __future__ import annotations

import json
from pathlib import Path

from foresail.curate.document import Document, Drop
from foresail.curate.read.source import Source, list_pieces, read_documents


def read(path: Path | str, **settings: object) -> list[tuple[str, Document | Drop]]:
    source = Source(path=str(path), **settings)
    return [pair for piece in list_pieces(source) for pair in read_documents(piece)]


def reasons(pairs: list[tuple[str, Document | Drop]]) -> list[str]:
    return [outcome.reason if isinstance(outcome, Drop) else "document" for _, outcome in pairs]


def rows(number: int) -> bytes:
    return b"".join(
        json.dumps({"text": f"text {n} " + "x" * (n % 50), "n": n}).encode() + b"\n" for n in range(number)
    )


def warc_record(number: int, body: bytes = b"<p>page", length: int | None = None) -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=UTF-8\r\n\r\n" + body
    headers = (
        b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:%d>\r\nWARC-Target-URI: http://a/%d\r\n"
        b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n"
    )
    return headers % (number, number, len(block) if length is None else length) + block + b"\r\n\r\n"
