"""Books made by hand: the order of chapters, what is locked or broken, XHTML that HTML would misread."""

from __future__ import annotations

import io
import zipfile

import pytest
from small_docx import make_zip

from foresail.curate.extract.epub.book import chapters
from foresail.curate.extract.epub.chapter import chapter_html
from foresail.curate.extract.package import Refused

CONTAINER = b'<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'


def book_files(num_chapters: int = 3, spine: str = "") -> dict[str, bytes]:
    items = "".join(
        f'<item id="c{n}" href="text/c%20{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(num_chapters)
    )
    order = spine or "".join(f'<itemref idref="c{n}"/>' for n in range(num_chapters))
    opf = (
        '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata>'
        "<dc:title>A Book</dc:title><dc:language>th</dc:language></metadata><manifest>"
        f'<item id="css" href="a.css" media-type="text/css"/>{items}</manifest><spine>{order}</spine></package>'
    )
    files = {"mimetype": b"application/epub+zip", "META-INF/container.xml": CONTAINER}
    files["OEBPS/book.opf"] = opf.encode()
    for n in range(num_chapters):
        files[f"OEBPS/text/c {n}.xhtml"] = f"<html><body><h1>Chapter {n}</h1></body></html>".encode()
    return files


def test_chapters_are_read_in_the_order_of_the_spine():
    order = "".join(f'<itemref idref="{id}"/>' for id in ("c2", "c0", "c2", "none", "css", "c1", "c0"))
    pages, labels = chapters(make_zip(book_files(spine=order)))
    assert [page.partition(b"Chapter ")[2][:1] for page in pages] == [b"2", b"0", b"1"]
    assert labels == {"title": "A Book", "book_language": "th"}


def test_a_broken_table_of_files_loses_no_chapter():
    for broken in (b"<package", b"no XML", b'<package><spine><itemref idref="x"/></spine></package>'):
        pages, _ = chapters(make_zip(book_files() | {"OEBPS/book.opf": broken}))
        assert len(pages) == 3
    files = book_files()
    del files["META-INF/container.xml"]
    assert len(chapters(make_zip(files))[0]) == 3


def test_a_damaged_chapter_does_not_lose_the_book():
    content = bytearray(make_zip(book_files()))
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entry = archive.getinfo("OEBPS/text/c 1.xhtml")
    content[entry.header_offset + 60 : entry.header_offset + 70] = b"\xff" * 10
    assert len(chapters(bytes(content))[0]) == 2


def locked(*names: str) -> bytes:
    references = "".join(f'<CipherReference URI="{name}"/>' for name in names)
    return f"<encryption>{references}</encryption>".encode()


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({"a.txt": b"no book"}, "damaged"),
        (book_files() | {"OEBPS/text/c 0.xhtml": b"<p>" + bytes(3 * 2**20)}, "too_large"),
        (
            book_files(2)
            | {"META-INF/encryption.xml": locked("OEBPS/text/c%200.xhtml", "OEBPS/text/c%201.xhtml")},
            "encrypted",
        ),
        (
            book_files() | {"OEBPS/book.opf": b'<!DOCTYPE p [<!ENTITY a "ha">]><package>&a;</package>'},
            "entities",
        ),
    ],
)
def test_what_is_no_book_is_refused(files: dict[str, bytes], reason: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("foresail.curate.extract.epub.book.MAX_UNPACKED", 2**21)
    with pytest.raises(Refused) as refusal:
        chapters(make_zip(files))
    assert refusal.value.drop.reason == reason


def test_names_that_climb_out_are_only_names(tmp_path):
    files = book_files(1)
    files["OEBPS/book.opf"] = files["OEBPS/book.opf"].replace(b"text/c%200.xhtml", b"../../etc/passwd")
    files["../etc/passwd"] = b"<p>inside"
    assert chapters(make_zip(files))[0] == [b"<p>inside"]


@pytest.mark.parametrize(
    ("xhtml", "html"),
    [
        (
            b'<?xml version="1.0"?><title/><p>a<a id="x"/>b<br/><img src="a/b"/></p>',
            '<title></title><p>a<a id="x"></a>b<br/><img src="a/b"/></p>',
        ),
        (b"<m:math><m:mi>x</m:mi></m:math>", "<math><mi>x</mi></math>"),
        (b'a<span epub:type="pagebreak" id="p3">3</span>b', "ab"),
        ('<?xml version="1.0" encoding="windows-874"?><p>ไทย'.encode("cp874"), "<p>ไทย"),
    ],
)
def test_xhtml_is_written_as_html(xhtml: bytes, html: str):
    assert chapter_html(xhtml) == html
