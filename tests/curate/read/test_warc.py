"""Archives: counts of real files, responses of every coding, and records whose length is wrong."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from source_files import read, reasons, warc_record

from foresail.curate.document import Document

WARC = Path(__file__).parents[4] / "shared/data/warc"


def response(headers: bytes, body: bytes, status: bytes = b"200 OK") -> bytes:
    block = b"HTTP/1.1 " + status + b"\r\n" + headers + b"\r\n" + body
    return (
        (
            b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://a/\r\n"
            b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n" % len(block)
        )
        + block
        + b"\r\n\r\n"
    )


def chunked(body: bytes) -> bytes:
    parts = [body[place : place + 7] for place in range(0, len(body), 7)]
    return b"".join(b"%x;ext=1\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


PAGE = b"<!doctype html><html><body>" + b"<p>paragraph</p>" * 20
RAW_DEFLATE = zlib.compressobj(wbits=-15)


def gzipped(data: bytes) -> bytes:
    """Without the time: two processes must name the same tests."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        (b"", PAGE),
        (b"Content-Encoding: gzip\r\n", gzipped(PAGE)),
        (b"Content-Encoding: gzip\r\n", PAGE),  # decoded by the crawler already
        (b"Content-Encoding: deflate\r\n", zlib.compress(PAGE)),
        (b"Content-Encoding: deflate\r\n", RAW_DEFLATE.compress(PAGE) + RAW_DEFLATE.flush()),
        (b"Content-Encoding: br\r\n", PAGE),
        (b"Content-Encoding: unheard-of\r\n", PAGE),
        (b"Transfer-Encoding: chunked\r\n", chunked(PAGE)),
        (b"Transfer-Encoding: chunked\r\n", PAGE),
        (b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\n", chunked(gzipped(PAGE))),
    ],
    ids=range(10),
)
def test_codings_of_a_response_are_undone(tmp_path: Path, headers: bytes, body: bytes):
    path = tmp_path / "a.warc"
    path.write_bytes(response(b'Content-Type: text/html; charset="TIS-620"\r\n' + headers, body))
    [(id, page)] = read(path)
    assert isinstance(page, Document)
    assert (id, page.content, page.url) == ("a/a.warc:0", PAGE, "http://a/")
    assert page.metadata == {"charset": "tis-620", "warc_record_id": "urn:uuid:1"}


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (response(b"Content-Type: text/html\r\n", PAGE, b"404 Not Found"), "http_status"),
        (response(b"Content-Type: image/png\r\n", b"\x89PNG"), "media_type"),
        (response(b"", b"\x89PNG\0"), "media_type"),
        (response(b"", PAGE), "document"),
        (response(b"Content-Type: text/html\r\n", b""), "empty"),
        (response(b"Content-Type: text/plain\r\n", b"a\0b"), "binary"),
        (response(b"Content-Type: application/rtf\r\n", b"a"), "rtf_unsupported"),
        (response(b"Content-Encoding: gzip\r\n", gzipped(bytes(10**6))), "too_large"),
        (response(b"Content-Encoding: gzip\r\n", gzipped(PAGE)[:-9]), "truncated"),
        (response(b"", PAGE, b"two hundred"), "damaged"),
        (warc_record(1, b"x" * 300_000), "too_large"),
    ],
    ids=range(11),
)
def test_a_record_is_a_document_or_one_drop(tmp_path: Path, record: bytes, reason: str):
    for name, pack in (("a.warc", bytes), ("a.warc.gz", gzipped)):
        path = tmp_path / name
        path.write_bytes(b"".join(map(pack, (warc_record(1), record, warc_record(2)))))
        assert reasons(read(path, max_document_bytes=50_000)) == ["document", reason, "document"]


@pytest.mark.parametrize("length", [0, 5, 60, 500, 10**9, -1, 10**30])
def test_records_beside_one_of_a_wrong_length_are_read(tmp_path: Path, length: int):
    records = [warc_record(1), warc_record(9, b"y" * 100, length), warc_record(2), warc_record(3)]
    for name, pack in (("a.warc", bytes), ("a.warc.gz", gzipped)):
        path = tmp_path / name
        path.write_bytes(b"".join(map(pack, records)))
        pairs = read(path)
        documents = [outcome for _, outcome in pairs if isinstance(outcome, Document)]
        assert [document.url for document in documents] == ["http://a/1", "http://a/2", "http://a/3"]
        assert len(documents) < len(pairs) <= len(documents) + 2


def test_a_damaged_member_loses_one_record(tmp_path: Path):
    members = [gzipped(warc_record(n, b"<p>%d" % n)) for n in range(4)]
    path = tmp_path / "a.warc.gz"
    for damaged in (members[1][:40], members[1][:20] + b"\xff\xff\xff" + members[1][23:], b"garbage\r\n\r\n"):
        path.write_bytes(b"".join([members[0], damaged, *members[2:]]))
        assert reasons(read(path)) == ["document", "damaged", "document", "document"]


def test_texts_of_a_wet_file_and_pages_of_an_arc_file(tmp_path: Path):
    text = b"Selamat pagi"
    (tmp_path / "a.warc.wet.gz").write_bytes(
        gzipped(
            b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a/\r\nWARC-Record-ID: <urn:uuid:1>\r\n"
            b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b\r\n\r\n" % (len(text), text)
        )
    )
    block = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + PAGE
    first = b"1 0 A\nURL IP-address Archive-date Content-type Archive-length\n"
    arc = b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain %d\n%b\n" % (len(first), first)
    good = b"http://a/ 10.0.0.1 20080430204825 text/html %d\n%b\n" % (len(block), block)
    wrong = b"http://b/ 10.0.0.1 20080430204825 text/html 20\n%b\n" % block
    (tmp_path / "b.arc.gz").write_bytes(b"".join(map(gzipped, (arc, good, wrong, good))))
    (tmp_path / "c.arc").write_bytes(arc + good + good[:-30])
    pairs = read(tmp_path)
    assert pairs[0][1].text == "Selamat pagi"
    assert reasons(pairs)[1:] == ["document", "damaged", "damaged", "document", "document", "truncated"]
    assert pairs[1][1].content == PAGE


@pytest.mark.skipif(not WARC.is_dir(), reason="../shared/data is not here")
@pytest.mark.parametrize(
    ("name", "documents", "drops"),
    [
        ("dolma/sample-0000.warc.gz", 24, []),
        ("dolma/sample-0001.warc.gz", 17, []),
        ("resiliparse/clipped.warc.gz", 0, ["truncated"]),
        ("resiliparse/clueweb-quirk.warc.gz", 29, []),
        ("resiliparse/warcfile.warc.gz", 16, []),
    ],
)
def test_counts_of_real_archives(name: str, documents: int, drops: list[str]):
    assert sorted(reasons(read(WARC / name))) == ["document"] * documents + drops
