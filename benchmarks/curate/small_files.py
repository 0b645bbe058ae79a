"""Small real files of every kind that a curation reads, for `hostile_files.py` to damage.

small_files() -> {"rows.jsonl": b'{"text": …', "page.html": …, "book.epub": …, "paper.pdf": …, …}
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import uuid
import zipfile
from collections.abc import Mapping

from small_doc import old_letter

PAGE = (
    "<!doctype html><html><head><title>Ships</title></head><body><nav><a href='/'>home</a></nav>"
    "<h1>Ships</h1><p>A ship &amp; its <b>crew</b> sail to the <a href='/port'>port</a>.</p>"
    "<pre><code class='language-python'>def sail():\n    return 1\n</code></pre>"
    "<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
    "<math><mfrac><mi>a</mi><mi>b</mi></mfrac></math><ul><li>one<li>two</ul></body></html>"
)
THAI = "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ"
W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
M = "http://schemas.openxmlformats.org/officeDocument/2006/math"


def small_files() -> dict[str, bytes]:
    rows = json_rows()
    pages = [warc_record(number) for number in range(6)]
    return {
        "rows.jsonl": rows,
        "rows.jsonl.gz": gzip.compress(rows),
        "rows.jsonl.bz2": bz2.compress(rows),
        "rows.jsonl.xz": lzma.compress(rows),
        "rows.jsonl.zst": arrow_packed(rows, "zstd"),
        "rows.jsonl.lz4": arrow_packed(rows, "lz4"),
        "rows.parquet": parquet_rows(compression="snappy"),
        "plain.parquet": parquet_rows(compression="none", use_dictionary=False),
        "pages.warc": b"".join(pages),
        "pages.warc.gz": b"".join(map(gzip.compress, pages)),
        "whole.warc.gz": gzip.compress(b"".join(pages)),
        "texts.warc.wet.gz": b"".join(map(gzip.compress, (wet_record(n) for n in range(5)))),
        "pages.arc": b"".join(arc_records()),
        "pages.arc.gz": b"".join(map(gzip.compress, arc_records())),
        "page.html": PAGE.encode(),
        "page.html.gz": gzip.compress(PAGE.encode()),
        "thai.txt": (THAI * 4).encode("cp874"),
        "wide.txt": (THAI * 4).encode("utf-16"),
        "lesson.md": f"# Ships\n\n{THAI}\n\n```python\nprint(1)\n```\n".encode(),
        "paper.pdf": drawn_pdf(),
        "book.epub": book(),
        "letter.docx": letter(),
        "old.doc": old_letter(),
    }


def json_rows() -> bytes:
    rows = [
        {"id": f"row-{n}", "text": f"{THAI} {n} " + "sea " * n, "url": f"http://a/{n}", "n": n}
        for n in range(30)
    ]
    return "".join(json.dumps(row, ensure_ascii=n % 2 == 0) + "\n" for n, row in enumerate(rows)).encode()


def arrow_packed(content: bytes, codec: str) -> bytes:
    import pyarrow

    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, codec) as stream:
        stream.write(content)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def parquet_rows(**options: object) -> bytes:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.table(
        {
            "text": [f"{THAI} number {n}" for n in range(40)],
            "labels": [[f"l{n % 3}", "x"] for n in range(40)],
            "score": [n / 7 for n in range(40)],
        }
    )
    sink = io.BytesIO()
    pyarrow.parquet.write_table(table, sink, row_group_size=15, **options)
    return sink.getvalue()


def response(number: int) -> bytes:
    """Plain, gzip or in chunks."""
    body = PAGE.replace("Ships", f"Ship {number}").encode()
    headers = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n"
    match number % 3:
        case 1:
            return headers + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(body)
        case 2:
            parts = [body[place : place + 100] for place in range(0, len(body), 100)]
            chunks = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
            return headers + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    return headers + b"\r\n" + body


def warc_record(number: int) -> bytes:
    return record_of(f"http://a/{number}", response(number))


def page_record(url: str, page: bytes) -> bytes:
    """A page as a server answered with it."""
    return record_of(url, b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + page)


def record_of(url: str, block: bytes) -> bytes:
    name = uuid.uuid5(uuid.NAMESPACE_URL, url)
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:{name}>\r\nWARC-Target-URI: {url}\r\n"
        "WARC-Date: 2024-01-01T00:00:00Z\r\nContent-Type: application/http; msgtype=response\r\n"
        f"Content-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def wet_record(number: int) -> bytes:
    text = f"{THAI} {number}\n".encode() * 5
    return (
        (
            b"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:uuid:%d>\r\nWARC-Target-URI: http://a/%d\r\n"
            b"Content-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % (number, number, len(text))
        )
        + text
        + b"\r\n\r\n"
    )


def arc_records() -> list[bytes]:
    first = b"1 0 A\nURL IP-address Archive-date Content-type Archive-length\n"
    blocks = [response(number) for number in range(4)]
    return [b"filedesc://a.arc 0.0.0.0 20080430204825 text/plain %d\n%b\n" % (len(first), first)] + [
        b"http://a/%d 10.0.0.1 20080430204825 text/html %d\n%b\n" % (number, len(block), block)
        for number, block in enumerate(blocks)
    ]


def drawn_pdf() -> bytes:
    """Two columns of text by matplotlib, with embedded fonts and packed streams."""
    from matplotlib.backends.backend_pdf import FigureCanvasPdf, PdfPages
    from matplotlib.figure import Figure

    stream = io.BytesIO()
    with PdfPages(stream, metadata={"CreationDate": None}) as pdf:
        for page in range(2):
            figure = Figure(figsize=(6, 8))
            FigureCanvasPdf(figure)
            for line in range(12):
                for left in (0.08, 0.55):
                    figure.text(left, 0.9 - 0.05 * line, f"the ships of page {page} line {line}", fontsize=9)
            pdf.savefig(figure)
    return stream.getvalue()


def zipped(files: Mapping[str, str | bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def book() -> bytes:
    items = "".join(
        f'<item id="c{n}" href="c{n}.xhtml" media-type="application/xhtml+xml"/>' for n in range(3)
    )
    order = "".join(f'<itemref idref="c{n}"/>' for n in range(3))
    return zipped(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="a.opf"/></rootfiles></container>',
            "a.opf": f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
            f"<spine>{order}</spine></package>",
        }
        | {f"c{n}.xhtml": PAGE.replace("Ships", f"Chapter {n}") for n in range(3)}
    )


def letter() -> bytes:
    paragraph = "<w:p><w:r><w:t>Dear crew, we sail.</w:t></w:r></w:p>"
    level = '<w:pPr><w:numPr><w:ilvl w:val="0"/><w:numId w:val="1"/></w:numPr></w:pPr>'
    item = f"<w:p>{level}<w:r><w:t>rope</w:t></w:r></w:p>"
    style = '<w:style w:styleId="T"><w:name w:val="Title"/></w:style>'
    table = f"<w:tbl><w:tr><w:tc>{paragraph}</w:tc><w:tc>{paragraph}</w:tc></w:tr></w:tbl>"
    formula = (
        "<w:p><m:oMath><m:f><m:num><m:r><m:t>a</m:t></m:r></m:num>"
        "<m:den><m:r><m:t>b</m:t></m:r></m:den></m:f></m:oMath></w:p>"
    )
    body = f"{paragraph}{item * 3}{table}{formula}{paragraph * 3}"
    return zipped(
        {
            "[Content_Types].xml": "<Types/>",
            "word/document.xml": f'<w:document xmlns:w="{W}" xmlns:m="{M}"><w:body>{body}</w:body></w:document>',
            "word/styles.xml": f'<w:styles xmlns:w="{W}">{style}</w:styles>',
        }
    )
